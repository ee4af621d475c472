// The client and the OpenAPI document say the same: the types are those that the document gives today, each operation has
// its method, which sends what the document describes, and each error has its class.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { typesOf } from '../../client/generate.ts';
import { ERROR_CLASSES, Scrip, ScripError } from '../../client/src/scrip.ts';
import { PROBLEMS } from '../../src/http/problem.ts';
import { type Scrip as Service, startScrip } from '../http/running-service.ts';
import { type Described, documentOf, errorsOf, type OpenApi, operationsOf } from '../openapi/described-service.ts';
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

test('the types are what `node client/generate.ts` makes of the document', async () => {
  assert.equal(await readFile(GENERATED, 'utf8'), typesOf(document as never));
});

test('a change of the document changes the types, and what has no type stops the generator', () => {
  const text = JSON.stringify(document);
  const renamed = JSON.parse(text.replaceAll('"active_balance"', '"balance_now"'));
  assert.notEqual(typesOf(renamed), typesOf(document as never));
  assert.throws(() => typesOf(JSON.parse(text.replaceAll('"integer"', '"bigint"'))), /No type is known/);
});

type Method = (fields: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** A value for each field of a request, as the document describes it. */
function fieldsOf({ operation }: Described): Record<string, unknown> {
  const body = operation.requestBody?.content['application/json']?.schema as { properties?: object } | undefined;
  const names = body ? Object.keys(body.properties ?? {}) : (operation.parameters ?? []).flatMap(queryName);
  return Object.fromEntries(names.map((name) => [name, name === 'end_user_id' ? END_USER : `a ${name}`]));
}

function queryName(parameter: { name: string; in: string }): string[] {
  return parameter.in === 'query' ? [parameter.name] : [];
}

test('each operation has a method of its name, which sends what the document describes', async () => {
  const scrip = new Scrip({ apiKey: 'scrip_write_canary', baseUrl: hostile.url, retries: 0 });
  const methods = scrip as unknown as Readonly<Record<string, Method | undefined>>;
  for (const described of operationsOf(document)) {
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
    assert.equal('idempotency-key' in received.headers, method === 'post', `only writes have a key: ${path}`);
    assert.equal(received.headers.authorization, 'Bearer scrip_write_canary');
  }
});

test('each error that the service names has a class of that name', () => {
  const classes = ERROR_CLASSES as Readonly<Record<string, { readonly name: string; readonly prototype: unknown }>>;
  for (const error of [...errorsOf(document).keys(), ...Object.keys(PROBLEMS)]) {
    assert.equal(classes[error]?.name, error, `${error} has a class`);
    assert(classes[error]?.prototype instanceof ScripError);
  }
});
