// Tests the help, errors and exit codes of `scrip`, and commands on a ledger that a server is using.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { accountName } from '../../src/cli/keys.ts';
import { InvalidSetting, readConfig } from '../../src/config.ts';
import { openStores } from '../../src/open-store.ts';
import { effort } from '../effort.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { add, assertOneLine, COMMANDS_AT_ONCE, ledgerAt, scrip } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

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
    ['key', 'create', '--help'],
    [/--account <name>/, /--name <name>/, /--scope <scope>/, /"read", "write"/, /default: *"write"/],
  ],
  [['--version'], [/^\d+\.\d+\.\d+$/m]],
  [
    ['serve', '--help'],
    [/--first-key/, /SIGTERM or SIGINT/],
  ],
  [
    ['key', '--help'],
    [/^ {2}create/m, /^ {2}list/m, /^ {2}revoke <id>/m],
  ],
  [
    ['copy', '--help'],
    [/--from <url>/, /--to <url>/, /resume an interrupted copy/],
  ],
];

describe('command-line help', { concurrency: COMMANDS_AT_ONCE }, () => {
  for (const [args, lists] of HELP.slice(0, effort(3, HELP.length))) {
    test(`scrip ${args.join(' ')} prints ${args.includes('--help') ? 'its commands and options' : 'the version'}`, async () => {
      const { code, stdout, stderr } = await scrip(args);
      for (const expected of lists) assert.match(stdout, expected);
      assert.deepEqual([code, stderr], [0, '']);
    });
  }
});

const INVALID: readonly (readonly [what: string, environment: Record<string, string>, message: RegExp])[] = [
  ['PORT with letters', { PORT: 'http' }, /^PORT is "http"; it must be a whole number/],
  ['PORT above 65535', { PORT: '65536' }, /^PORT is "65536"; it must be a whole number/],
  ['PORT with a fraction', { PORT: '80.5' }, /^PORT is "80\.5"; it must be a whole number/],
  ['DATABASE_URL without a scheme', { DATABASE_URL: './scrip.db' }, /^DATABASE_URL must be file:PATH/],
  ['DATABASE_URL without a path', { DATABASE_URL: 'file:' }, /^DATABASE_URL must be file:PATH/],
  ['DATABASE_LANES of 0 with a ledger file', { DATABASE_LANES: '0' }, /^DATABASE_LANES is "0"; it must be a whole/],
  ['an unknown LOG_LEVEL', { LOG_LEVEL: 'loud' }, /^LOG_LEVEL is "loud"; it must be one of fatal, error/],
];

for (const [what, environment, message] of INVALID) {
  test(`${what} is refused with an error that names the setting`, () => {
    assert.throws(() => readConfig(environment), { name: InvalidSetting.name, message });
  });
}

test('the name of an account must have 1 to 200 characters', () => {
  assert.equal(accountName(` ${'x'.repeat(200)} `), 'x'.repeat(200));
  for (const name of ['', ' ', '\u200b', 'x'.repeat(201)])
    assert.throws(() => accountName(name), /Must be 1 to 200 characters/);
});

const ERRORS: readonly (readonly [what: string, args: readonly string[], message: RegExp])[] = [
  ['a mistyped command', ['serv'], /unknown command 'serv'/],
  ['an unknown key command', ['key', 'forge'], /unknown command 'forge'/],
  ['an unknown option', ['serve', '--quietly'], /unknown option '--quietly'/],
  ['key create without an account', ['key', 'create'], /required option '--account <name>' not specified/],
  ['key create with a blank account name', ['key', 'create', '--account', '  '], /Must be 1 to 200 characters/],
  [
    'key create with control characters in the account name',
    ['key', 'create', '--account', 'a\nb\u001b'],
    /'--account <name>' .* Must not contain control characters\.$/,
  ],
  [
    'key create with a tab in the key name',
    ['key', 'create', '--account', 'x', '--name', 'a\tb'],
    /'--name <name>' .* Must not contain control characters\.$/,
  ],
  [
    'key create with an unknown scope',
    ['key', 'create', '--account', 'x', '--scope', 'admin'],
    /Allowed choices are read, write/,
  ],
  ['key revoke with an invalid ID', ['key', 'revoke', 'first'], /Must be an ID from `scrip key list`/],
  ['key revoke without an ID', ['key', 'revoke'], /missing required argument 'id'/],
  [
    'key revoke on a missing ledger',
    ['key', 'revoke', '1'],
    /^There is no ledger at .*scrip\.db; check DATABASE_URL\.$/,
  ],
];

describe('command-line errors', { concurrency: COMMANDS_AT_ONCE }, () => {
  for (const [what, args, message] of ERRORS) {
    test(`for ${what}, scrip prints one line on standard error and exits with code 1`, () =>
      assertOneLine(args, ledgerAt(temporaryFile()), message));
  }

  test('if the scheme of DATABASE_URL is not supported, scrip serve and scrip key list print an error without the password', async () => {
    for (const args of [['serve'], ['key', 'list']])
      await assertOneLine(args, { DATABASE_URL: 'mysql://root:hunter2@db' }, /^DATABASE_URL must be file:PATH/);
  });

  test('the error for an unreachable PostgreSQL server does not contain the password', () =>
    assertOneLine(['serve'], { DATABASE_URL: 'postgres://scrip:hunter2@db/scrip' }, /the ledger in PostgreSQL/));

  test('scrip serve, verify, migrate and key create fail on a file that is not a ledger', async () => {
    const file = temporaryFile();
    writeFileSync(file, 'account,credits\n');
    const key = ['key', 'create', '--account', 'Lovelace Ltd'];
    for (const args of [['serve'], ['verify'], ['migrate'], key])
      await assertOneLine(args, ledgerAt(file), /is not a Scrip ledger; point DATABASE_URL at a new file/);
  });

  test('scrip serve fails if its port is in use', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const environment = { ...ledgerAt(temporaryFile()), PORT: String(port) };
    await assertOneLine(
      ['serve'],
      { ...environment, LOG_LEVEL: 'silent' },
      /^Address already in use .*set a different PORT, METRICS_PORT or HOST/,
    );
  });

  test('scrip serve fails if it cannot listen on HOST', async () => {
    for (const HOST of ['scrip.invalid', '192.0.2.1'])
      await assertOneLine(
        ['serve'],
        { ...ledgerAt(temporaryFile()), PORT: '0', HOST, LOG_LEVEL: 'silent' },
        /^Cannot listen on this address .*set a different PORT, METRICS_PORT or HOST/,
      );
  });

  test('if the operating system cannot look up a file, scrip prints a one-line error', async () => {
    const loop = temporaryFile();
    symlinkSync(loop, loop);
    await assertOneLine(['verify'], ledgerAt(loop), /scrip\.db cannot be opened .*ELOOP/);
    await assertOneLine(['restore', loop], ledgerAt(temporaryFile()), /^The backup was not restored, .*ELOOP/);
    await assertOneLine(['import', loop, '--account', 'acme'], {}, /^The operating system reported an error: ELOOP/);
  });

  test('scrip key create fails after five seconds if another program has locked the ledger', async (t) => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
    const other = new DatabaseSync(file);
    t.after(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    await assertOneLine(['key', 'create', '--account', 'Lovelace Ltd'], ledgerAt(file), /busy|locked/);
  });

  test('scrip serve fails on a ledger that another server is using', async (t) => {
    const file = temporaryFile();
    const { ledger } = await openStores({ kind: 'file', path: file });
    t.after(() => ledger.close());
    await assertOneLine(
      ['serve'],
      { ...ledgerAt(file), PORT: '0' },
      /is in use by another Scrip process; stop that process first/,
    );
  });
});

describe('commands on a ledger', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('scrip migrate reports that the schema of a new or existing ledger is up to date', async () => {
    const file = temporaryFile();
    for (const _ of ['new', 'existing']) {
      const { code, stdout, stderr } = await scrip(['migrate'], ledgerAt(file));
      assert.deepEqual([code, stdout, stderr], [0, 'The ledger schema is up to date.\n', '']);
    }
    assert.equal(statSync(file).mode & 0o777, 0o600, 'only the user that runs Scrip can read the ledger');
  });

  test('scrip migrate, verify, key list and key revoke work while a server is running', async (t: TestContext) => {
    const file = temporaryFile();
    const { url } = await serveHere(t, ledgerAt(file));
    const secret = await createKeyHere(ledgerAt(file));
    assert.equal((await add(url, secret)).status, 200);
    const codes = [['migrate'], ['verify'], ['key', 'list'], ['key', 'revoke', '1']].map((args) =>
      scrip(args, ledgerAt(file)),
    );
    for (const { code, stderr } of await Promise.all(codes)) assert.deepEqual([code, stderr], [0, '']);
  });
});
