// Tests that `scrip serve` never logs an API key and, after a SIGTERM or SIGINT, responds to the requests in flight.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTools } from '../../src/open-tools.ts';
import { effort } from '../effort.ts';
import { auditOf, problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { add, COMMANDS_AT_ONCE, ledgerAt, MAIN, Running, SECRET, serve } from './scrip-command.ts';
import { createKeyHere } from './served-here.ts';

/** Options of `unshare` with which a command is process 1, as in a container. */
const CONTAINER = ['--pid', '--fork', '--kill-child'];

describe('scrip serve', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('scrip serve --create creates the folder and the ledger, but no API key, and prints how to create a key', async (t) => {
    const file = join(temporaryFolder(), 'new', 'scrip.db');
    const server = await serve(t, file, ['--create']);
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
  });

  test('if the log cannot be written because the disk is full, the server still answers, and stops on SIGTERM', {
    skip: !existsSync('/dev/full') && 'this system has no /dev/full',
  }, async () => {
    const file = temporaryFile();
    const line = ['-c', 'exec "$@" 2> /dev/full', 'sh', process.execPath, MAIN, 'serve'];
    const env = { ...process.env, ...ledgerAt(file), PORT: '0', REQUEST_LOG: 'yes' };
    const child = spawn('sh', line, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = once(child, 'exit');
    const [printed] = (await once(child.stdout, 'data')) as [Buffer];
    const [url] = /http:\/\/[\d.:]+/.exec(printed.toString()) ?? [];
    for (let count = 0; count < 20; count++) assert.equal((await fetch(`${url}/healthz`)).status, 200);
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });

  test('scrip serve creates a ledger in an empty file, and prints a message', async (t) => {
    const file = temporaryFile();
    writeFileSync(file, '');
    const server = await serve(t, file);
    await server.says(new RegExp(`^Created a new ledger: ${file}$`, 'm'));
  });

  test('if the ledger has API keys, scrip serve prints only its addresses, and never logs an API key, regardless of which part of a request contains the key', async (t) => {
    const file = temporaryFile();
    const [secret, revoked] = [await createKeyHere(ledgerAt(file)), await createKeyHere(ledgerAt(file))];
    const unknown = secret.replace(/.{6}$/, '000000');
    const { tools, keys } = await openTools({ kind: 'file', path: file });
    await keys.revoke(2);
    await tools.close();
    const server = await serve(t, file, [], { LOG_LEVEL: 'trace' });
    const { url } = server;
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
    assert.match(stdout, /^Scrip is listening on \S+\nAPI docs: \S+\/docs\n$/);
    assert.match(stderr, /Scrip stopped/, 'the log is captured');
    for (const key of [secret, revoked, unknown]) assert(!(stdout + stderr).includes(key.slice(12, 45)));
  });

  for (const signal of effort(['SIGTERM'], ['SIGTERM', 'SIGINT']) as NodeJS.Signals[]) {
    test(`on ${signal}, scrip serve responds to the requests in flight and exits with code 0`, async (t) => {
      const file = temporaryFile();
      const secret = await createKeyHere(ledgerAt(file));
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

  test('if a SIGTERM or SIGINT arrives right after scrip serve prints that it is listening, the command exits with code 0', async (t) => {
    const ends = [
      { args: ['serve'], signal: 'SIGINT' },
      { args: ['serve', '--first-key'], signal: 'SIGTERM' },
      { args: ['serve'], signal: 'SIGTERM' },
    ] as const;
    for (const { args, signal } of ends.slice(0, effort(2, 3))) {
      const running = new Running(args, { ...ledgerAt(temporaryFile()), PORT: '0' });
      t.after(() => running.kill('SIGKILL'));
      await running.says(/^Scrip is listening on/m);
      running.kill(signal);
      assert.equal((await running.ended).code, 0, `${args} ${signal}`);
    }
  });

  test('a SIGTERM or SIGINT that arrives while scrip serve is starting as process 1 of a container ends it at once', {
    skip: spawnSync('unshare', [...CONTAINER, 'true']).status !== 0 && 'this system has no PID namespaces',
  }, async (t) => {
    const silentDatabase = createServer().listen(0, '127.0.0.1');
    t.after(() => silentDatabase.close());
    await once(silentDatabase, 'listening');
    const { port } = silentDatabase.address() as AddressInfo;
    const env = { ...process.env, DATABASE_URL: `postgres://127.0.0.1:${port}/scrip`, PORT: '0' };
    for (const [signal, code] of [['SIGTERM', 143] as const, ['SIGINT', 130] as const]) {
      const child = spawn('unshare', [...CONTAINER, process.execPath, MAIN, 'serve'], { env, stdio: 'ignore' });
      t.after(() => child.kill('SIGKILL'));
      await once(silentDatabase, 'connection');
      process.kill(Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')), signal);
      assert.deepEqual(await once(child, 'exit'), [code, null]);
    }
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
