// Tests that `/docs` shows the whole OpenAPI document, even to visitors without a session, and even if the console
// fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiReferencePage, type OpenApiDocument } from '../../src/console/pages/api-reference.ts';
import { decode, newOwner, onOneStore, Visitor } from './visitor.ts';

onOneStore('the API reference', (start) => {
  test('the API reference contains every operation, field and error of the OpenAPI document', async () => {
    const { scrip } = await start();
    const { status, headers, text } = await new Visitor(scrip).get('/docs');
    assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8']);
    assert.match(String(headers['content-security-policy']), /default-src 'none'/);
    assert.doesNotMatch(String(headers['content-security-policy']), /upgrade-insecure-requests/);
    const page = decode(text);
    const document = (await scrip.call('GET', '/openapi.json', { key: null })).body as unknown as OpenApiDocument;
    const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    );
    assert(calls.length >= 6);
    for (const { path, method, operation } of calls) {
      const own = page.split(`id="${operation.operationId}"`)[1]?.split('</section>')[0] ?? '';
      assert(own.includes(`${method} ${path}<`), path);
      assert(own.includes(`${scrip.url}${path}`), `the request to ${path}`);
      for (const { name } of operation.parameters ?? []) assert(own.includes(`<code>${name}`), `${name} of ${path}`);
      for (const name of Object.keys(Object.values(operation.requestBody?.content ?? {})[0]?.schema?.properties ?? {}))
        assert(own.includes(`<code>${name}<`), `${name} of ${path}`);
      for (const [code, { content = {} }] of Object.entries(operation.responses ?? {})) {
        if (code === '200') continue;
        for (const name of Object.keys(Object.values(content)[0]?.examples ?? {}))
          assert(own.includes(`href="/problems/${name}"`), `${name} of ${path}`);
      }
    }
    assert(page.includes('active_balance_by_cycle[].cycle_start'), 'the fields of array entries are listed');
    assert.doesNotMatch(page, /undefined|\[object/);
  });

  test('the API reference shows the navigation of the console only to signed-in users', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    assert.match((await owner.get('/docs')).text, /<a href="\/docs" aria-current="page">/);
    assert.match((await owner.get('/console/overview')).text, /<a href="\/docs">/);
    assert.doesNotMatch((await new Visitor(scrip).get('/docs')).text, /Overview/);
    await owner.post('/console/account/theme', { theme: 'dark' });
    assert.match((await owner.get('/docs')).text, /<html lang="en" data-theme="dark">/);
  });

  test('the API reference is available even if the tables of the console are missing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    await sql('ALTER TABLE console_sessions RENAME TO console_sessions_away');
    assert.equal((await owner.get('/docs')).status, 200);
    assert.equal((await owner.get('/console/overview')).status, 503);
    await sql('ALTER TABLE console_sessions_away RENAME TO console_sessions');
  });
});

test('the API reference escapes text from the OpenAPI document and shows text in backticks as code', () => {
  const document: OpenApiDocument = {
    info: { title: 'Scrip', version: '1 <b>', description: 'A `<ledger>` & more.' },
    tags: [{ name: 'Credits' }],
    paths: { '/add': { post: { operationId: 'add', tags: ['Credits'], summary: '<i>Add</i>' } } },
  };
  const page = apiReferencePage(document, 'https://scrip.example', null);
  assert.doesNotMatch(page, /<i>|<b>/);
  assert.match(page, /A <code>&#60;ledger&#62;<\/code> &#38; more\./);
});
