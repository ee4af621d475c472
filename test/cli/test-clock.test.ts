// Tests `scrip serve --test-clock`: only a ledger without postings can get a test clock, and an acknowledged move of
// the test clock is not lost if the server is killed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { Service } from '../../src/service.ts';
import { examplesIn, REPOSITORY } from '../docs/documents.ts';
import { effort } from '../effort.ts';
import { eventually } from '../http/running-service.ts';
import { freePort, PostgresServer } from '../store/postgres/postgres-server.ts';
import { problemsOf, temporaryFile } from '../store/temporary-ledger.ts';
import { auditAt } from '../store/tools/copied-ledger.ts';
import { assertOneLine, type Server, scrip, serve } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const NO_CLOCK = /created without a test clock.* omit --test-clock\.$/;
const HAS_CLOCK = /created with a test clock.* add --test-clock/;
const KILLS = effort(1, 7);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
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

function serveTestsHere(t: TestContext, url: string): Promise<Service> {
  return serveHere(t, environmentAt(url), { testClock: true });
}

function newKey(url: string): Promise<string> {
  return createKeyHere(environmentAt(url));
}

type Served = Pick<Server, 'url'>;

async function call(at: Served, key: string, path: string, body?: object): Promise<Record<string, unknown>> {
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
  const granting = await serveHere(t, environmentAt(url));
  await call(granting, key, '/add', { end_user_id: USER, amount: 1 });
  await granting.stop();
}

async function now(at: Served, key: string): Promise<number> {
  return Date.parse((await call(at, key, '/test-clock')).now as string);
}

async function killed(at: Server, url: string): Promise<void> {
  at.kill('SIGKILL');
  await at.ended;
  if (url.startsWith('file:')) return;
  // PostgreSQL may still be running the killed server's last COMMIT.
  const connections = `SELECT FROM pg_stat_activity WHERE datname = '${new URL(url).pathname.slice(1)}'`;
  await eventually(async () => (await server.query(connections)).rowCount === 0, 'no connection is left');
}

for (const [store, place] of PLACES) {
  test(`scrip serve without --test-clock refuses a ledger that has a test clock, and the error names the option (${store})`, async (t) => {
    const url = await place();
    await (await serveTestsHere(t, url)).stop();
    await assert.rejects(serveHere(t, environmentAt(url)), { name: 'CannotOpen', message: HAS_CLOCK });
    await (await serveTestsHere(t, url)).stop();
  });

  test(`a ledger that contains only API keys can get a test clock (${store})`, async (t) => {
    const url = await place();
    const key = await newKey(url);
    const running = await serveTestsHere(t, url);
    assert(Math.abs((await now(running, key)) - Date.now()) < 60_000, "the clock starts at the machine's time");
    await running.stop();
    await assert.rejects(serveHere(t, environmentAt(url)), { name: 'CannotOpen', message: HAS_CLOCK });
  });

  test(`a ledger that already has credits cannot get a test clock, but can be served without one (${store})`, async (t) => {
    const url = await place();
    const key = await newKey(url);
    await grantInRealTime(t, url, key);
    await assert.rejects(serveTestsHere(t, url), { name: 'CannotOpen', message: NO_CLOCK });
    const real = await serveHere(t, environmentAt(url));
    const response = await fetch(`${real.url}/test-clock`, { headers: { authorization: `Bearer ${key}` } });
    const { error, detail } = (await response.json()) as Record<string, unknown>;
    assert.deepEqual([response.status, error], [404, 'NotFound']);
    assert.match(String(detail), /--test-clock on a new ledger/);
  });

  test(`if kill -9 ends the server, every acknowledged move of the test clock is stored, a move in flight is stored completely or not at all, and the clock never goes back (${store})`, async (t) => {
    const url = await place();
    const key = await newKey(url);
    const starting = await serveTestsHere(t, url);
    await call(starting, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 1 });
    let answered = await now(starting, key);
    await starting.stop();
    for (let round = 0; round < KILLS; round++) {
      const running = await serveTests(t, url);
      const reads: number[] = [];
      let isOver = false;
      const moving = (async () => {
        for (;;) answered = Date.parse((await call(running, key, '/test-clock', { advance_days: 1 })).now as string);
      })().catch(() => {});
      const reading = (async () => {
        while (!isOver) reads.push(await now(running, key));
      })().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 40 + 15 * round));
      await killed(running, url);
      isOver = true;
      await Promise.all([moving, reading]);
      const restarted = await serveTestsHere(t, url);
      const after = await now(restarted, key);
      assert(after === answered || after === answered + DAY_MS, `${new Date(after).toISOString()}`);
      assert(after >= Math.max(0, ...reads), 'no reader has seen a later time');
      const balance = await call(restarted, key, `/get-active-balance?end_user_id=${USER}`);
      const [cycle] = balance.active_balance_by_cycle as readonly { cycle_start: string }[];
      assert.deepEqual([balance.active_balance, Date.parse(cycle?.cycle_start ?? '')], [10, after]);
      await restarted.stop();
      answered = after;
    }
    assert.deepEqual(problemsOf(await auditAt(url)), []);
  });
}

test('on PostgreSQL, a ledger that was served without a test clock cannot get one, even if it has no postings', async (t) => {
  const url = await server.createDatabase();
  await newKey(url);
  await (await serveHere(t, environmentAt(url))).stop();
  await assert.rejects(serveTestsHere(t, url), { name: 'CannotOpen', message: NO_CLOCK });
  await (await serveHere(t, environmentAt(url))).stop();
});

test('if --test-clock is missing for a ledger with a test clock, or given for a ledger that cannot get one, scrip serve exits with code 1 and prints the reason in one line', async (t) => {
  const [withClock, real] = [`file:${temporaryFile()}`, `file:${temporaryFile()}`];
  await (await serveTestsHere(t, withClock)).stop();
  await assertOneLine(['serve'], environmentAt(withClock), HAS_CLOCK);
  await grantInRealTime(t, real, await newKey(real));
  await assertOneLine(['serve', '--test-clock'], { ...environmentAt(real), PORT: '0' }, NO_CLOCK);
});

test('after a move of the test clock, the next request to every Scrip process on the same database uses the new time', async (t) => {
  const url = await server.createDatabase();
  const key = await newKey(url);
  const one = await serveTestsHere(t, url);
  const two = await serveTests(t, url, '--processes', '2');
  await call(one, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 30 });
  await call(one, key, '/subtract', { end_user_id: USER, amount: 4 });
  const all = [one, two, two];
  for (let round = 0; round < 12; round++) {
    const mover = all[round % all.length] as Served;
    const moved = await call(mover, key, '/test-clock', { advance_days: 30 });
    for (const one of all) {
      assert.equal((await call(one, key, '/test-clock')).now, moved.now);
      const balance = await call(one, key, `/get-active-balance?end_user_id=${USER}`);
      const [cycle] = balance.active_balance_by_cycle as readonly { cycle_start: string }[];
      assert.deepEqual([balance.active_balance, cycle?.cycle_start], [10, moved.now]);
    }
    const spender = all[(round + 1) % all.length] as Served;
    await call(spender, key, '/subtract', { end_user_id: USER, amount: 4 });
  }
  two.kill('SIGTERM');
  await Promise.all([one.stop(), two.ended]);
  assert.deepEqual(problemsOf(await auditAt(url)), []);
});

test('scrip copy from SQLite to PostgreSQL, or from PostgreSQL to SQLite, also copies the test clock', async (t) => {
  const [file, database, back] = [`file:${temporaryFile()}`, await server.createDatabase(), `file:${temporaryFile()}`];
  const key = await newKey(file);
  const original = await serveTestsHere(t, file);
  await call(original, key, '/start-cycle', { end_user_id: USER, amount: 10, validity_days: 30 });
  const { now: moved } = await call(original, key, '/test-clock', { advance_days: 400 });
  await original.stop();
  for (const [from, to] of [
    [file, database],
    [database, back],
  ] as const) {
    assert.match(await run(from, 'copy', '--from', from, '--to', to), /^Copy complete/);
    await assert.rejects(serveHere(t, environmentAt(to)), { message: HAS_CLOCK });
    assert.deepEqual(problemsOf(await auditAt(to)), []);
    const copy = await serveTestsHere(t, to);
    assert.equal((await call(copy, key, '/test-clock')).now, moved);
    assert.equal((await call(copy, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 10);
    await copy.stop();
  }
  const real = `file:${temporaryFile()}`;
  await grantInRealTime(t, real, await newKey(real));
  await assertOneLine(['copy', '--from', file, '--to', real], environmentAt(file), /created without a test clock/);
});

test('commands such as import, export, backup and restore work on a ledger with a test clock', async (t) => {
  const file = temporaryFile();
  const url = `file:${file}`;
  await (await serveTestsHere(t, url)).stop();
  assert.match(await run(url, 'demo'), /Created the account/);
  const key = await newKey(url);
  const csv = `${file}.csv`;
  await writeFile(csv, `end_user_id,amount,validity_days\n${USER},25,90\n`);
  assert.match(await run(url, 'import', csv, '--account', 'Lovelace Ltd'), /1 of 1 row imported/);
  const running = await serveTestsHere(t, url);
  const other = `${file}.other.csv`;
  await writeFile(other, `end_user_id,amount,validity_days\n${USER},5,90\n`);
  assert.match(await run(url, 'import', other, '--account', 'Lovelace Ltd', '--another'), /1 of 1 row imported/);
  assert.equal((await call(running, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 30);
  await call(running, key, '/test-clock', { advance_days: 90 });
  assert.equal((await call(running, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 0);
  assert.match(await run(url, 'export', '--account', 'Lovelace Ltd', '--format', 'csv'), /add/);
  assert.match(await run(url, 'backup', `${file}.backup`), /^Backup complete/);
  assert.match(await run(url, 'verify'), /^Verification passed\./);
  await running.stop();
  const restored = `file:${file}.restored`;
  await run(url, 'restore', `${file}.backup`, '--to', restored);
  await assert.rejects(serveHere(t, environmentAt(restored)), { message: HAS_CLOCK });
  const again = await serveTestsHere(t, restored);
  assert.equal((await call(again, key, `/get-active-balance?end_user_id=${USER}`)).active_balance, 0);
});

test('the commands in docs/testing-subscriptions.md start a server with a test clock, and read and move the clock', async () => {
  const commands = examplesIn('docs/testing-subscriptions.md').map(({ command }) => command);
  const [moving, serving] = ['curl "$SCRIP_URL/test-clock"', 'scrip='].map((beginning) =>
    commands.find((command) => command.startsWith(beginning)),
  );
  assert(moving !== undefined && serving !== undefined, 'the document has both commands');
  const tests = 'npm --prefix ../app test\n';
  assert(serving.endsWith(tests), "the last command runs the reader's tests");
  const script = serving
    .replaceAll('npm run -s scrip --', `${process.execPath} ${join(REPOSITORY, 'src/main.ts')}`)
    .replaceAll('8081', String(await freePort()))
    .replace(tests, `${moving}echo "settings: \${DATABASE_URL-}\${PORT-}\${LOG_LEVEL-}"\nkill $!\nwait\n`);
  const env = { ...process.env, DATABASE_URL: undefined, PORT: undefined, LOG_LEVEL: undefined };
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env, timeout: 60_000 });
  assert.match(stdout, /settings: $/m, "the reader's tests do not get the settings of Scrip");
  const [before, after] = [...stdout.matchAll(/"now":"([^"]+)"/g)].map(([, instant]) => Date.parse(instant as string));
  assert.equal((after as number) - (before as number), 31 * DAY_MS, stdout);
});

test('`npm start -- --test-clock` passes the option on to `scrip serve`', async () => {
  const { scripts } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
  assert.match(scripts.start, / serve --first-key$/, 'npm appends command-line options');
});
