// Tests that the types, methods and error classes of the client match the OpenAPI document.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { typesOf } from '../../client/generate.ts';
import { ERROR_CLASSES, Scrip, ScripError } from '../../client/src/scrip.ts';
import { PROBLEMS } from '../../src/http/problems.ts';
import {
  type Described,
  documentOf,
  errorsOf,
  isOfTestClock,
  type OpenApi,
  operationsOf,
} from '../http/openapi/described-service.ts';
import { type Scrip as Service, startScrip } from '../http/running-service.ts';
import { END_USER, HostileScrip } from './hostile-scrip.ts';

const GENERATED = join(import.meta.dirname, '../../client/src/generated.ts');

let service: Service;
let document: OpenApi;
let hostile: HostileScrip;
before(async () => {
  service = await startScrip();
  document = await documentOf(service);
  hostile = await HostileScrip.start();
});
after(async () => {
  await service.stop();
  await hostile.stop();
});

test('client/src/generated.ts is up to date with the OpenAPI document', async () => {
  assert.equal(await readFile(GENERATED, 'utf8'), typesOf(document as never));
});

test('if the OpenAPI document changes, the generated types change, and the generator fails on a schema that it does not support', () => {
  const text = JSON.stringify(document);
  const renamed = JSON.parse(text.replaceAll('"active_balance"', '"balance_now"'));
  assert.notEqual(typesOf(renamed), typesOf(document as never));
  assert.throws(() => typesOf(JSON.parse(text.replaceAll('"integer"', '"bigint"'))), /Unsupported schema/);
});

type Method = (fields: Readonly<Record<string, unknown>>) => Promise<unknown>;

function fieldsOf({ operation }: Described): Record<string, unknown> {
  const body = operation.requestBody?.content['application/json']?.schema as { properties?: object } | undefined;
  const names = body ? Object.keys(body.properties ?? {}) : (operation.parameters ?? []).flatMap(queryName);
  return Object.fromEntries(names.map((name) => [name, name === 'end_user_id' ? END_USER : `a ${name}`]));
}

function queryName(parameter: { name: string; in: string }): string[] {
  return parameter.in === 'query' ? [parameter.name] : [];
}

test('the client has a method for each operation, and the method sends the request that the OpenAPI document describes', async () => {
  const scrip = new Scrip({ apiKey: 'scrip_write_canary', baseUrl: hostile.url, retries: 0 });
  const methods = scrip as unknown as Readonly<Record<string, Method | undefined>>;
  for (const described of operationsOf(document).filter((one) => !isOfTestClock(one))) {
    const { path, method, operation } = described;
    const call = methods[operation.operationId];
    assert(call, `the client has ${operation.operationId}`);
    hostile.behave();
    const fields = fieldsOf(described);
    await call.call(scrip, fields);
    const [received] = hostile.received;
    assert(received);
    const url = new URL(received.url, hostile.url);
    assert.deepEqual([received.method.toLowerCase(), url.pathname], [method, path]);
    assert.deepEqual(received.body ?? Object.fromEntries(url.searchParams), fields, path);
    assert.equal(
      'idempotency-key' in received.headers,
      'Transaction-Id' in (operation.responses[200]?.headers ?? {}),
      `only writes have an idempotency key: ${path}`,
    );
    assert.equal(received.headers.authorization, 'Bearer scrip_write_canary');
  }
});

test('the client has a class for each error of the service', () => {
  const classes = ERROR_CLASSES as Readonly<Record<string, { readonly name: string; readonly prototype: unknown }>>;
  for (const error of [...errorsOf(document).keys(), ...Object.keys(PROBLEMS)]) {
    assert.equal(classes[error]?.name, error, `${error} has a class`);
    assert(classes[error]?.prototype instanceof ScripError);
  }
});
