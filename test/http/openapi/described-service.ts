// Reads the operations, errors and schemas from the OpenAPI document of a running service.

import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Scrip } from '../running-service.ts';

interface Media {
  readonly schema: unknown;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: unknown;
    readonly example?: unknown;
    readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Response {
  readonly headers?: Readonly<Record<string, { readonly schema: { readonly examples: readonly unknown[] } }>>;
  readonly content: Readonly<Record<string, Media>>;
}

export interface OpenApi {
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Record<string, unknown> }>>;
  };
}

export async function documentOf(scrip: Scrip): Promise<OpenApi> {
  const { status, text } = await scrip.call('GET', '/openapi.json', { key: null });
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf({ paths }: OpenApi): readonly Described[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
}

export function isOfTestClock({ path }: Described): boolean {
  return path === '/test-clock';
}

export function errorsOf(document: OpenApi): ReadonlyMap<string, unknown> {
  const errors = new Map<string, unknown>();
  for (const { operation } of operationsOf(document)) {
    for (const { content } of Object.values(operation.responses)) {
      for (const [error, { value }] of Object.entries(content['application/problem+json']?.examples ?? {}))
        errors.set(error, value);
    }
  }
  return errors;
}

export function validatorsOf(document: OpenApi): (schema: unknown) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addFormat('int64', true);
  ajv.addFormat('uuid', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
  ajv.addFormat('date-time', (text) => !Number.isNaN(Date.parse(text)) && text.endsWith('Z'));
  ajv.addFormat('uri-reference', (text) => URL.canParse(text, 'http://scrip'));
  const schemas = closed(document.components.schemas) as object;
  return (schema) => ajv.compile({ ...(schema as object), components: { schemas } });
}

/** Returns a stricter copy of a schema: the copy rejects members that the schema does not describe. */
function closed(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const parts = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, closed(part)]));
  return 'properties' in parts ? { additionalProperties: false, ...parts } : parts;
}
