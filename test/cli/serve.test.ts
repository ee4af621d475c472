// Tests that `scrip serve` never logs an API key, and responds to requests in flight after a SIGTERM or SIGINT.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTools } from '../../src/open-tools.ts';
import { auditOf, problemsOf, temporaryFile } from '../store/temporary-ledger.ts';
import { add, COMMANDS_AT_ONCE, createKey, ledgerAt, Running, SECRET, scrip, serve } from './scrip-command.ts';

describe('scrip serve', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('without --first-key, scrip serve creates no API key, and prints how to create one if the ledger has none', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    await server.says(/no API keys/);
    server.kill('SIGTERM');
    const { code, stdout, stderr } = await server.ended;
    assert.equal(code, 0);
    const [listening, docs, created, next] = stdout.trimEnd().split('\n');
    assert.match(`${listening}\n${docs}`, /^Scrip is listening on (\S+)\nAPI docs: \1\/docs$/);
    assert.equal(created, `Created a new ledger: ${file}`);
    assert.equal(next, 'This ledger has no API keys yet. Create one: scrip key create --account NAME');
    assert.doesNotMatch(stdout + stderr, SECRET);
    const { tools, keys } = await openTools({ kind: 'file', path: file });
    assert.deepEqual(await keys.list(), []);
    await tools.close();
    await createKey(file);
    const again = await serve(t, file);
    again.kill('SIGTERM');
    assert.match((await again.ended).stdout, /^Scrip is listening on \S+\nAPI docs: \S+\/docs\n$/);
  });

  test('scrip serve never logs an API key, no matter which part of a request contains the key', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file, [], { LOG_LEVEL: 'trace' });
    const { url } = server;
    const [secret, revoked] = [await createKey(file), await createKey(file)];
    const unknown = secret.replace(/.{6}$/, '000000');
    await scrip(['key', 'revoke', '2'], ledgerAt(file));
    const headers = { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' };
    const statuses = [
      await add(url, secret),
      await add(url, secret, -1),
      await add(url, revoked),
      await add(url, unknown),
      await fetch(`${url}/add?api_key=${secret}`, { method: 'POST', headers, body: '{}' }),
      await fetch(`${url}/add`, { method: 'POST', headers, body: `{"${secret}":` }),
      await fetch(`${url}/add`, { method: 'POST', headers, body: `{"amount":"${secret}"}` }),
      await fetch(`${url}/${secret}`, { headers }),
      await fetch(`${url}/get-active-balance?end_user_id=${secret}`, { headers }),
    ].map(({ status }) => status);
    assert.deepEqual(statuses, [200, 422, 401, 401, 422, 400, 422, 404, 422]);
    server.kill('SIGTERM');
    const { stdout, stderr } = await server.ended;
    assert.match(stderr, /Scrip stopped/, 'the log is captured');
    for (const key of [secret, revoked, unknown]) assert(!(stdout + stderr).includes(key.slice(12, 45)));
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`on ${signal}, scrip serve responds to the requests in flight and exits with code 0`, async (t) => {
      const file = temporaryFile();
      const secret = await createKey(file);
      const server = await serve(t, file);
      const { inFlight, answer } = await halfSent(server.url, secret);
      server.kill(signal);
      await untilConnectionsAreRefused(server.url);
      server.kill(signal);
      inFlight.end('00}');
      const response = await answer;
      assert.equal(response.statusCode, 200);
      assert.match(await text(response), /"amount":100\b/);
      const { code, stderr } = await server.ended;
      assert.equal(code, 0, stderr);
      assert.match(stderr, /Scrip stopped/);
      const { tools } = await openTools({ kind: 'file', path: file });
      const audited = await auditOf(tools);
      assert.deepEqual([problemsOf(audited), audited.postings], [[], 1]);
      await tools.close();
    });
  }

  test('if scrip serve gets a SIGTERM right after it prints that it is listening, it exits with code 0', async (t) => {
    const codes = [['serve'], ['serve'], ['serve', '--first-key']].map(async (args) => {
      const running = new Running(args, { ...ledgerAt(temporaryFile()), PORT: '0' });
      t.after(() => running.kill('SIGKILL'));
      await running.says(/^Scrip is listening on/m);
      running.kill('SIGTERM');
      return (await running.ended).code;
    });
    assert.deepEqual(await Promise.all(codes), [0, 0, 0]);
  });
});

async function halfSent(
  url: string,
  secret: string,
): Promise<{ inFlight: ClientRequest; answer: Promise<IncomingMessage> }> {
  const body = `{"end_user_id":"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23","amount":1`;
  const headers = {
    Authorization: `Bearer ${secret}`,
    'Content-Type': 'application/json',
    'Content-Length': body.length + 3,
    Expect: '100-continue',
  };
  const inFlight = request(`${url}/add`, { method: 'POST', headers });
  const answer = new Promise<IncomingMessage>((resolve, reject) =>
    inFlight.once('response', resolve).once('error', reject),
  );
  inFlight.flushHeaders();
  await once(inFlight, 'continue');
  inFlight.write(body);
  return { inFlight, answer };
}

async function untilConnectionsAreRefused(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  for (;;) {
    const socket = connect(Number(port), hostname);
    const isOpen = await new Promise((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    if (!isOpen) return;
    await sleep(10);
  }
}
