// The command line, as processes: what it lists, what it prints and to which stream when something is wrong, and with
// which code it leaves.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import {
  add,
  assertOneLine,
  COMMANDS_AT_ONCE,
  createKey,
  type Environment,
  ledgerAt,
  scrip,
  serve,
} from './store/scrip-command.ts';
import { openFor, temporaryFile } from './store/temporary-ledger.ts';

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

describe('help', { concurrency: COMMANDS_AT_ONCE }, () => {
  for (const [args, lists] of HELP) {
    test(`scrip ${args.join(' ')} lists what there is`, async () => {
      const { code, stdout, stderr } = await scrip(args);
      for (const expected of lists) assert.match(stdout, expected);
      assert.deepEqual([code, stderr], [0, '']);
    });
  }
});

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

describe('errors', { concurrency: COMMANDS_AT_ONCE }, () => {
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

describe('other commands', { concurrency: COMMANDS_AT_ONCE }, () => {
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
