// The command line, as processes: what it prints and to which stream, with which code it leaves, which keys it makes,
// and that it goes when it is told to, once everybody has been answered.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import { add, ledgerAt, Running, scrip, serve } from './store/scrip-command.ts';
import { auditOf, openFor, temporaryFile } from './store/temporary-ledger.ts';

/** How many commands run at once: each takes a third of a second of one core to start. */
const CONCURRENCY = 3;

const SECRET = /scrip_(?:read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}/g;

async function createKey(file: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await scrip(['key', 'create', '--account', 'Lovelace Ltd', ...args], ledgerAt(file));
  assert.deepEqual([code, stderr], [0, '']);
  return stdout.trimEnd().split('\n').at(-1) as string;
}

const HELP: readonly (readonly [args: readonly string[], lists: readonly RegExp[]])[] = [
  [
    ['--help'],
    [
      /^ {2}serve/m,
      /^ {2}key/m,
      /^ {2}invite/m,
      /^ {2}password/m,
      /^ {2}verify/m,
      /^ {2}migrate/m,
      /^ {2}copy/m,
      /PORT +8080/,
      /HOST +127\.0\.0\.1/,
      /DATABASE_URL +file:/,
      /LOG_LEVEL/,
    ],
  ],
  [
    ['serve', '--help'],
    [/--first-key/, /SIGTERM or SIGINT/],
  ],
  [
    ['key', '--help'],
    [/^ {2}create/m, /^ {2}list/m, /^ {2}revoke <id>/m],
  ],
  [
    ['key', 'create', '--help'],
    [/--account <name>/, /--name <name>/, /--scope <scope>/, /"read", "write"/, /default: *"write"/],
  ],
  [
    ['copy', '--help'],
    [/--from <url>/, /--to <url>/, /goes on where it stopped/],
  ],
  [['--version'], [/^\d+\.\d+\.\d+$/m]],
];

describe('help', { concurrency: CONCURRENCY }, () => {
  for (const [args, lists] of HELP) {
    test(`scrip ${args.join(' ')} lists what there is`, async () => {
      const { code, stdout, stderr } = await scrip(args);
      for (const expected of lists) assert.match(stdout, expected);
      assert.deepEqual([code, stderr], [0, '']);
    });
  }
});

type Environment = Record<string, string>;

const ERRORS: readonly (readonly [what: string, args: readonly string[], environment: Environment, says: RegExp])[] = [
  ['a port of letters', ['serve'], { PORT: 'http' }, /^PORT is "http"; it must be a whole number/],
  ['a port too high', ['serve'], { PORT: '65536' }, /^PORT is "65536"; it must be a whole number/],
  ['a broken port', ['serve'], { PORT: '80.5' }, /^PORT is "80\.5"; it must be a whole number/],
  ['another database', ['serve'], { DATABASE_URL: 'mysql://root:hunter2@db' }, /^DATABASE_URL must be file:PATH/],
  ['a database without a scheme', ['verify'], { DATABASE_URL: './scrip.db' }, /^DATABASE_URL must be file:PATH/],
  ['a database of no name', ['key', 'list'], { DATABASE_URL: 'file:' }, /^DATABASE_URL must be file:PATH/],
  [
    'a log level that is none',
    ['serve'],
    { LOG_LEVEL: 'loud' },
    /^LOG_LEVEL is "loud"; it must be one of fatal, error/,
  ],
  ['an unknown command', ['frobnicate'], {}, /unknown command 'frobnicate'/],
  ['a mistyped command', ['serv'], {}, /unknown command 'serv'/],
  ['an unknown command of keys', ['key', 'forge'], {}, /unknown command 'forge'/],
  ['an unknown option', ['serve', '--quietly'], {}, /unknown option '--quietly'/],
  ['a key without an account', ['key', 'create'], {}, /required option '--account <name>' not specified/],
  ['a key of a blank account', ['key', 'create', '--account', '  '], {}, /1 to 200 characters/],
  ['a key of an endless account', ['key', 'create', '--account', 'x'.repeat(201)], {}, /1 to 200 characters/],
  [
    'a key of no known scope',
    ['key', 'create', '--account', 'x', '--scope', 'admin'],
    {},
    /Allowed choices are read, write/,
  ],
  ['revoking what is no id', ['key', 'revoke', 'first'], {}, /whole number, as shown by key list/],
  ['revoking nothing', ['key', 'revoke'], {}, /missing required argument 'id'/],
  [
    'looking for a key where there is no ledger',
    ['key', 'revoke', '1'],
    {},
    /^There is no ledger at .*scrip\.db; check DATABASE_URL\.$/,
  ],
];

async function assertOneLine(args: readonly string[], environment: Environment, says: RegExp): Promise<void> {
  const { code, stdout, stderr } = await scrip(args, environment);
  assert.match(stderr, /^[^\n]+\n$/, 'one line on standard error');
  assert.match(stderr.trimEnd(), says);
  assert.doesNotMatch(stderr, /hunter2/, 'a password stays where it was');
  assert.deepEqual([code, stdout], [1, '']);
}

describe('errors', { concurrency: CONCURRENCY }, () => {
  for (const [what, args, environment, says] of ERRORS) {
    test(`${what} is one line on standard error, and exit code 1`, () =>
      assertOneLine(args, { ...ledgerAt(temporaryFile()), ...environment }, says));
  }

  test('a PostgreSQL that is not there is named without its password', () =>
    assertOneLine(['serve'], { DATABASE_URL: 'postgres://scrip:hunter2@db/scrip' }, /PostgreSQL cannot be used/));

  test('a file that is no ledger is refused by every command', async () => {
    const file = temporaryFile();
    writeFileSync(file, 'account,credits\n');
    const key = ['key', 'create', '--account', 'Lovelace Ltd'];
    for (const args of [['serve'], ['verify'], ['migrate'], ['key', 'list'], key])
      await assertOneLine(args, ledgerAt(file), /is not a Scrip ledger; point DATABASE_URL at another file/);
  });

  test('a port in use is refused', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const environment = { ...ledgerAt(temporaryFile()), PORT: String(port) };
    await assertOneLine(
      ['serve'],
      { ...environment, LOG_LEVEL: 'silent' },
      /^Another program listens there already .*set PORT or HOST/,
    );
  });

  test('a ledger that another program keeps busy is refused, after five seconds', async (t) => {
    const file = temporaryFile();
    await createKey(file);
    const other = new DatabaseSync(file);
    t.after(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    await assertOneLine(['key', 'create', '--account', 'Lovelace Ltd'], ledgerAt(file), /busy|locked/);
  });

  test('a ledger in use is refused', async (t) => {
    const file = temporaryFile();
    await openFor(t, file);
    await assertOneLine(
      ['serve'],
      { ...ledgerAt(file), PORT: '0' },
      /is in use by another Scrip process; stop that one first/,
    );
  });
});

describe('keys', { concurrency: CONCURRENCY }, () => {
  test('key create makes the ledger when there is none, and prints the secret alone on its last line', async () => {
    const file = join(dirname(temporaryFile()), 'new', 'folder', 'scrip.db');
    const secret = await createKey(file);
    assert.match(secret, /^scrip_write_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/);
    assert.match(await createKey(file, '--scope', 'read'), /^scrip_read_/);
    assert(existsSync(file));
  });

  test('revoking a key that is not there says so', async () => {
    const file = temporaryFile();
    await createKey(file);
    await assertOneLine(['key', 'revoke', '999'], ledgerAt(file), /^There is no API key 999; see `scrip key list`\.$/);
  });

  test('key list shows every key, and no secret', async () => {
    const file = temporaryFile();
    await scrip(['migrate'], ledgerAt(file));
    assert.deepEqual((await scrip(['key', 'list'], ledgerAt(file))).stdout.trim().split(/\s+/), [
      'ID',
      'ACCOUNT',
      'NAME',
      'SCOPE',
      'KEY',
      'CREATED',
      'LAST',
      'USED',
      'REVOKED',
    ]);
    const secrets = [await createKey(file), await createKey(file, '--scope', 'read')];
    assert.equal((await scrip(['key', 'revoke', '1'], ledgerAt(file))).stdout, 'API key 1 is revoked.\n');
    const { code, stdout, stderr } = await scrip(['key', 'list'], ledgerAt(file));
    const [, first, second] = stdout.split('\n');
    const day = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d`;
    assert.match(first ?? '', new RegExp(`^1 +Lovelace Ltd +write +scrip_write_\\w{6}… +${day} +${day}$`));
    assert.match(second ?? '', new RegExp(`^2 +Lovelace Ltd +read +scrip_read_\\w{6}… +${day}$`));
    for (const secret of secrets) assert(!stdout.includes(secret.slice(-20)));
    assert.doesNotMatch(stdout, SECRET);
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('key list shows what a key is called, and within seconds that it was used', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    const [used] = [await createKey(file, '--name', ' Backend, Köln '), await createKey(file)];
    assert.equal((await add(server.url, used)).status, 200);
    const listed = async () => (await scrip(['key', 'list'], ledgerAt(file))).stdout.split('\n');
    const day = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d`;
    const wasUsed = new RegExp(`^1 +Lovelace Ltd +Backend, Köln +write +scrip_write_\\w{6}… +${day} +${day}$`);
    for (let times = 0; times < 10 && !wasUsed.test((await listed())[1] ?? ''); times++) await sleep(300);
    const [, first, second] = await listed();
    assert.match(first ?? '', wasUsed);
    assert.match(second ?? '', new RegExp(`^2 +Lovelace Ltd +write +scrip_write_\\w{6}… +${day}$`));
    const { code } = await scrip(['key', 'create', '--account', 'a', '--name', 'n'.repeat(201)], ledgerAt(file));
    assert.equal(code, 1);
  });

  test('what was used last is kept when the server stops', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    const secret = await createKey(file);
    assert.equal((await add(server.url, secret)).status, 200);
    server.kill('SIGTERM');
    await server.ended;
    const { stdout } = await scrip(['key', 'list'], ledgerAt(file));
    assert.match(stdout.split('\n')[1] ?? '', /…( +\d{4}-\d\d-\d\d \d\d:\d\d){2}$/);
  });

  test('a key that is made while the server runs works at once, and a revoked one stops within a second', async (t) => {
    const file = temporaryFile();
    const { url } = await serve(t, file);
    const [kept, revoked] = [await createKey(file), await createKey(file)];
    for (const secret of [kept, revoked]) assert.equal((await add(url, secret)).status, 200);
    const { code } = await scrip(['key', 'revoke', '2'], ledgerAt(file));
    assert.equal(code, 0);
    await sleep(1_000);
    assert.equal((await add(url, revoked)).status, 401);
    assert.equal((await add(url, kept)).status, 200);
  });

  test('a first key is made once, with a request that works when it is pasted', async (t) => {
    const file = temporaryFile();
    const first = await serve(t, file, ['--first-key']);
    const [command] = await first.says(/^ {2}(curl .*)$/m);
    if (spawnSync('curl', ['--version']).error) t.diagnostic('curl is missing: the request is not pasted');
    else {
      const { stdout } = spawnSync('sh', ['-c', String(command)], { encoding: 'utf8' });
      assert.deepEqual(JSON.parse(stdout).amount, 100);
    }
    first.kill('SIGTERM');
    const ended = await first.ended;
    assert.equal(new Set(ended.stdout.match(SECRET)).size, 1);
    assert.equal(ended.stdout.match(/Your first API key/g)?.length, 1);
    const second = await serve(t, file, ['--first-key']);
    await second.says(/^The console is at /m);
    second.kill('SIGTERM');
    const { stdout, stderr } = await second.ended;
    assert.match(stdout, /^Scrip is up on \S+, with its API described at \S+\/docs\nThe console is at /);
    assert.doesNotMatch(stdout + stderr + ended.stderr, SECRET);
  });
});

describe('serve', { concurrency: CONCURRENCY }, () => {
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

describe('other commands', { concurrency: CONCURRENCY }, () => {
  test('migrate says that the ledger is up to date, whether it was there before or not', async () => {
    const file = temporaryFile();
    for (const _ of ['made', 'found']) {
      const { code, stdout, stderr } = await scrip(['migrate'], ledgerAt(file));
      assert.deepEqual([code, stdout, stderr], [0, 'The ledger has the schema of this version.\n', '']);
    }
  });

  test('every command but serve works beside a running server', async (t: TestContext) => {
    const file = temporaryFile();
    const { url } = await serve(t, file);
    const secret = await createKey(file);
    assert.equal((await add(url, secret)).status, 200);
    const codes = [['migrate'], ['verify'], ['key', 'list'], ['key', 'revoke', '1']].map((args) =>
      scrip(args, ledgerAt(file)),
    );
    for (const { code, stderr } of await Promise.all(codes)) assert.deepEqual([code, stderr], [0, '']);
  });
});
