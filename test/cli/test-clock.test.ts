// Tests `scrip serve --test-clock`: only a ledger without postings can get a test clock, and a move of the test clock
// survives a kill of the server.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { examplesIn, REPOSITORY } from '../docs/documents.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { assertOneLine, SECRET, type Server, scrip, serve } from './scrip-command.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const NO_CLOCK = /created without a test clock.* omit --test-clock\.$/;
const HAS_CLOCK = /created with a test clock.* add --test-clock/;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const PLACES = [
  ['SQLite', async () => `file:${temporaryFile()}`],
  ['PostgreSQL', () => server.createDatabase()],
] as const;

function environmentAt(url: string): Record<string, string> {
  return { DATABASE_URL: url, DATABASE_ACCEPT_UNSAFE: 'yes', LOG_LEVEL: 'error' };
}

async function run(url: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await scrip(args, environmentAt(url));
  assert.equal(code, 0, `${args}: ${stderr}`);
  return stdout;
}

function serveTests(t: TestContext, url: string, ...args: readonly string[]): Promise<Server> {
  return serve(t, '', ['--test-clock', ...args], environmentAt(url));
}

async function newKey(url: string): Promise<string> {
  const [secret] = (await run(url, 'key', 'create', '--account', 'Acme')).match(SECRET) ?? [];
  return secret as string;
}

async function call(at: Server, key: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(at.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const fields = (await response.json()) as Record<string, unknown>;
  assert.equal(response.status, 200, JSON.stringify(fields));
  return fields;
}

async function grantInRealTime(t: TestContext, url: string, key: string): Promise<void> {
  const granting = await serve(t, '', [], environmentAt(url));
  await call(granting, key, '/add', { end_user_id: USER, amount: 1 });
  await stopped(granting);
}

async function now(at: Server, key: string): Promise<number> {
  return Date.parse((await call(at, key, '/test-clock')).now as string);
}

async function stopped(at: Server, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  at.kill(signal);
  await at.ended;
}

for (const [store, place] of PLACES) {
  test(`without --test-clock, scrip serve refuses a ledger that was created with a test clock, and the error names the option (${store})`, async (t) => {
    const url = await place();
    await stopped(await serveTests(t, url));
    await assertOneLine(['serve'], environmentAt(url), HAS_CLOCK);
    await stopped(await serveTests(t, url));
  });

  test(`scrip serve --test-clock gives a test clock to a ledger that contains only API keys (${store})`, async (t) => {
    const url = await place();
    const key = await newKey(url);
    const running = await serveTests(t, url);
    assert(Math.abs((await now(running, key)) - Date.now()) < 60_000, "the clock starts at the machine's time");
    await stopped(running);
    await assertOneLine(['serve'], environmentAt(url), HAS_CLOCK);
  });

  test(`scrip serve --test-clock refuses a ledger that has credits and no test clock; without the option, scrip serve accepts this ledger (${store})`, async (t) => {
    const url = await place();
    const key = await newKey(url);
    await grantInRealTime(t, url, key);
    await assertOneLine(['serve', '--test-clock'], { ...environmentAt(url), PORT: '0' }, NO_CLOCK);
    const real = await serve(t, '', [], environmentAt(url));
    const response = await fetch(`${real.url}/test-clock`, { headers: { authorization: `Bearer ${key}` } });
    const { error, detail } = (await response.json()) as Record<string, unknown>;
    assert.deepEqual([response.status, error], [404, 'NotFound']);
    assert.match(String(detail), /--test-clock on a new ledger/);
  });

  test(`a move of the test clock survives a kill -9 right after the response (${store})`, async (t) => {
    const url = await place();
    let running = await serveTests(t, url);
    const key = await newKey(url);
    await call(running, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 1 });
    const began = await now(running, key);
    for (let days = 1; days <= 3; days++) {
      const moved = await call(running, key, '/test-clock', { advance_days: 1 });
      await stopped(running, 'SIGKILL');
      running = await serveTests(t, url);
      assert.equal(await now(running, key), began + days * DAY_MS);
      assert.equal(Date.parse(moved.now as string), began + days * DAY_MS);
    }
    const { transactions } = await call(running, key, `/get-all-user-transactions?end_user_id=${USER}`);
    assert.equal((transactions as unknown[]).length, 4);
    await stopped(running);
    assert.match(await run(url, 'verify'), /^Verification passed\./);
  });

  test(`if the server is killed during a move of the test clock, the move is stored completely or not at all, and the clock never goes back (${store})`, async (t) => {
    const url = await place();
    let running = await serveTests(t, url);
    const key = await newKey(url);
    let answered = await now(running, key);
    for (let round = 0; round < 4; round++) {
      const reads: number[] = [];
      let isOver = false;
      const moving = (async () => {
        for (;;) answered = Date.parse((await call(running, key, '/test-clock', { advance_days: 1 })).now as string);
      })().catch(() => {});
      const reading = (async () => {
        while (!isOver) reads.push(await now(running, key));
      })().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 40 + 15 * round));
      await stopped(running, 'SIGKILL');
      isOver = true;
      await Promise.all([moving, reading]);
      running = await serveTests(t, url);
      const after = await now(running, key);
      assert(after === answered || after === answered + DAY_MS, `${new Date(after).toISOString()}`);
      assert(after >= Math.max(0, ...reads), 'no reader has seen a later time');
      answered = after;
    }
  });
}

test('after a move of the test clock, every Scrip process on the same database uses the new time for its next request', async (t) => {
  const url = await server.createDatabase();
  const first = await serveTests(t, url);
  const second = await serveTests(t, url);
  const third = await serveTests(t, url, '--processes', '2');
  const key = await newKey(url);
  await call(first, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 30 });
  await call(first, key, '/subtract', { end_user_id: USER, amount: 4 });
  const all = [first, second, third, third];
  for (let round = 0; round < 12; round++) {
    const mover = all[round % all.length] as Server;
    const moved = await call(mover, key, '/test-clock', { advance_days: 30 });
    for (const one of all) {
      assert.equal((await call(one, key, '/test-clock')).now, moved.now);
      const balance = await call(one, key, `/get-active-balance?end_user_id=${USER}`);
      const [cycle] = balance.active_balance_by_cycle as readonly { cycle_start: string }[];
      assert.deepEqual([balance.active_balance, cycle?.cycle_start], [10, moved.now]);
    }
    const spender = all[(round + 1) % all.length] as Server;
    await call(spender, key, '/subtract', { end_user_id: USER, amount: 4 });
  }
  for (const one of [first, second, third]) await stopped(one);
  assert.match(await run(url, 'verify'), /^Verification passed\./);
});

test('if scrip copy copies a ledger from SQLite to PostgreSQL, or back, the copy has the same test clock', async (t) => {
  const [file, database, back] = [`file:${temporaryFile()}`, await server.createDatabase(), `file:${temporaryFile()}`];
  const original = await serveTests(t, file);
  const key = await newKey(file);
  await call(original, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 30 });
  const { now: moved } = await call(original, key, '/test-clock', { advance_days: 400 });
  await stopped(original);
  for (const [from, to] of [
    [file, database],
    [database, back],
  ] as const) {
    assert.match(await run(from, 'copy', '--from', from, '--to', to), /^Copy complete/);
    await assertOneLine(['serve'], environmentAt(to), HAS_CLOCK);
    assert.match(await run(to, 'verify'), /^Verification passed\./);
    const copy = await serveTests(t, to);
    assert.equal((await call(copy, key, '/test-clock')).now, moved);
    assert.equal((await call(copy, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 10);
    await stopped(copy);
  }
  const real = `file:${temporaryFile()}`;
  await grantInRealTime(t, real, await newKey(real));
  await assertOneLine(['copy', '--from', file, '--to', real], environmentAt(file), /created without a test clock/);
});

test('commands such as import, export, backup and restore work on a ledger with a test clock', async (t) => {
  const file = temporaryFile();
  const url = `file:${file}`;
  await stopped(await serveTests(t, url));
  assert.match(await run(url, 'demo'), /Created the account/);
  const key = await newKey(url);
  assert.match(await run(url, 'key', 'list'), /Acme/);
  const csv = `${file}.csv`;
  await writeFile(csv, `end_user_id,amount,validity_days\n${USER},25,90\n`);
  assert.match(await run(url, 'import', csv, '--account', 'Acme'), /1 of 1 row granted/);
  const running = await serveTests(t, url);
  const other = `${file}.other.csv`;
  await writeFile(other, `end_user_id,amount,validity_days\n${USER},5,90\n`);
  assert.match(await run(url, 'import', other, '--account', 'Acme', '--another'), /1 of 1 row granted/);
  assert.equal((await call(running, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 30);
  await call(running, key, '/test-clock', { advance_days: 90 });
  assert.equal((await call(running, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 0);
  assert.match(await run(url, 'export', '--account', 'Acme', '--format', 'csv'), /add/);
  assert.match(await run(url, 'backup', `${file}.backup`), /^Backup complete/);
  assert.match(await run(url, 'verify'), /^Verification passed\./);
  await stopped(running);
  const restored = `file:${file}.restored`;
  await run(url, 'restore', `${file}.backup`, '--to', restored);
  await assertOneLine(['serve'], environmentAt(restored), HAS_CLOCK);
  const again = await serveTests(t, restored);
  assert.equal((await call(again, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 0);
});

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  return port;
}

test('the commands in docs/testing-subscriptions.md start a server with a test clock, and read and move the clock', async () => {
  const commands = examplesIn('docs/testing-subscriptions.md').map(({ command }) => command);
  const [moving, serving] = ['curl "$SCRIP_URL/test-clock"', 'export DATABASE_URL'].map((beginning) =>
    commands.find((command) => command.startsWith(beginning)),
  );
  assert(moving !== undefined && serving !== undefined, 'the document has both commands');
  const tests = 'npm --prefix ../app test\n';
  assert(serving.endsWith(tests), "the last command runs the reader's tests");
  const script = serving
    .replaceAll('npm run -s scrip --', `'${process.execPath}' '${join(REPOSITORY, 'src/main.ts')}'`)
    .replaceAll('8081', String(await freePort()))
    .replace(tests, `${moving}kill $!\nwait\n`);
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { timeout: 60_000 });
  const [before, after] = [...stdout.matchAll(/"now":"([^"]+)"/g)].map(([, instant]) => Date.parse(instant as string));
  assert.equal((after as number) - (before as number), 31 * DAY_MS, stdout);
});

test('`npm start -- --test-clock` passes the option on to `scrip serve`', async () => {
  const { scripts } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
  assert.match(scripts.start, / serve --first-key$/, 'npm appends command-line options');
});
