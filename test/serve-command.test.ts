// `scrip serve` as a process: what it prints, what it keeps out of its log, and that it goes when it is told to, once
// everybody has been answered.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import { add, COMMANDS_AT_ONCE, createKey, ledgerAt, Running, SECRET, scrip, serve } from './store/scrip-command.ts';
import { auditOf, temporaryFile } from './store/temporary-ledger.ts';

describe('serve', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('without being asked for a key it makes none and prints none', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    server.kill('SIGTERM');
    const { code, stdout, stderr } = await server.ended;
    assert.equal(code, 0);
    assert.match(stdout, /^Scrip is up on \S+, with its API described at \S+\/docs\n$/);
    assert.doesNotMatch(stdout + stderr, SECRET);
    const beside = openSqliteStoreBeside(file);
    assert.deepEqual(await beside.apiKeys.list(), []);
    await beside.close();
  });

  test('no key comes into the log, wherever a client puts it', async (t) => {
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
    assert.match(stderr, /Scrip has stopped/, 'there is a log');
    for (const key of [secret, revoked, unknown]) assert(!(stdout + stderr).includes(key.slice(12, 45)));
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`at ${signal} it answers what is in flight, and leaves with 0`, async (t) => {
      const file = temporaryFile();
      const secret = await createKey(file);
      const server = await serve(t, file);
      const { inFlight, answer } = await halfSent(server.url, secret);
      server.kill(signal);
      await refusesConnections(server.url);
      server.kill(signal);
      inFlight.end('00}');
      const response = await answer;
      assert.equal(response.statusCode, 200);
      assert.match(await text(response), /"amount":100\b/);
      const { code, stderr } = await server.ended;
      assert.equal(code, 0, stderr);
      assert.match(stderr, /Scrip has stopped/);
      const beside = openSqliteStoreBeside(file);
      assert.deepEqual(await auditOf(beside), { findings: [], store: [] });
      assert.equal((await beside.audit(() => {})).postings, 1);
      await beside.close();
    });
  }

  test('at a signal that comes the moment it says that it is up, it leaves with 0 all the same', async (t) => {
    const codes = [['serve'], ['serve'], ['serve', '--first-key']].map(async (args) => {
      const running = new Running(args, { ...ledgerAt(temporaryFile()), PORT: '0' });
      t.after(() => running.kill('SIGKILL'));
      await running.says(/^Scrip is up on/m);
      running.kill('SIGTERM');
      return (await running.ended).code;
    });
    assert.deepEqual(await Promise.all(codes), [0, 0, 0]);
  });
});

/** A request whose header has arrived, and whose body has not. */
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

async function refusesConnections(url: string): Promise<void> {
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
