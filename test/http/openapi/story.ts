// Sends the example requests of the OpenAPI document in order, and replaces the IDs in the examples with the IDs that
// the service assigned.

import assert from 'node:assert/strict';
import type { Reply, Scrip } from '../running-service.ts';
import type { Described, Operation } from './described-service.ts';

export interface Example {
  readonly path: string;
  readonly name: string;
  readonly shown: unknown;
  send(scrip: Scrip): Promise<Reply>;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

export class Story {
  readonly #given = new Map<string, string>();

  examplesOf({ method, path, operation }: Described): readonly Example[] {
    const body = operation.requestBody?.content['application/json'];
    const answer = operation.responses[200]?.content['application/json'];
    const [shownFirst] = Object.values(answer?.examples ?? {});
    const names = body?.examples ? Object.keys(body.examples) : [''];
    return names.map((name) => {
      const shown = answer?.examples?.[name]?.value ?? answer?.example ?? shownFirst?.value;
      const sent = body && (body.examples?.[name]?.value ?? body.example);
      const headers = parametersOf(operation, 'header', name);
      const query = new URLSearchParams(parametersOf(operation, 'query', name));
      return {
        path,
        name,
        shown,
        send: async (scrip) => {
          const content = sent === undefined ? {} : { body: this.#asGiven(JSON.stringify(sent)) };
          const reply = await scrip.call(method.toUpperCase(), `${path}?${query}`, { ...content, headers });
          if (method === 'post' && reply.status === 200) this.#learn(operation, name, shown, reply);
          return reply;
        },
      };
    });
  }

  asShown(text: string): string {
    const shown = new Map([...this.#given].map(([inDocument, given]) => [given, inDocument]));
    return masked(text.replaceAll(UUID, (id) => shown.get(id) ?? id));
  }

  #asGiven(text: string): string {
    return text.replaceAll(UUID, (id) => this.#given.get(id) ?? id);
  }

  #learn(operation: Operation, name: string, shown: unknown, { text, headers }: Reply): void {
    const inDocument = JSON.stringify(shown).match(UUID) ?? [];
    const given = text.match(UUID) ?? [];
    assert.equal(
      given.length,
      inDocument.length,
      `${operation.operationId}: the response has as many IDs as the document shows`,
    );
    for (const [index, id] of inDocument.entries()) this.#same(id, given[index] as string);
    const schema = operation.responses[200]?.headers?.['Transaction-Id']?.schema;
    // Some operations, such as previews, create no transaction.
    if (schema === undefined) return;
    const names = Object.keys(operation.requestBody?.content['application/json']?.examples ?? { '': null });
    this.#same(schema.examples[names.indexOf(name)] as string, headers['transaction-id'] as string);
  }

  #same(inDocument: string, given: string): void {
    assert.equal(this.#given.get(inDocument) ?? given, given, `${inDocument} always stands for the same assigned ID`);
    this.#given.set(inDocument, given);
  }
}

/** Masks cursors and event IDs, because these depend on the IDs that the service assigned. */
export function masked(text: string): string {
  return text.replaceAll(/"next_cursor":"[^"]+"/g, '"next_cursor":"…"').replaceAll(/"evt_[0-9a-f]{32}"/g, '"evt_…"');
}

export function parametersOf({ parameters = [] }: Operation, place: string, name = ''): Record<string, string> {
  const shown = parameters
    .filter((parameter) => parameter.in === place)
    .map((parameter) => [parameter.name, parameter.examples?.[name]?.value ?? parameter.example] as const)
    .filter(([, example]) => example !== undefined);
  return Object.fromEntries(shown.map(([parameter, example]) => [parameter, String(example)]));
}
