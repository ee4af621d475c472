// Tests settings that are probably mistakes, such as a missing folder or a misspelled environment variable.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { misspelledSettings, SETTING_NAMES } from '../../src/config.ts';
import { backUpFile } from '../../src/store/sqlite/tools/backup.ts';
import { effort } from '../effort.ts';
import { temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { assertOneLine, COMMANDS_AT_ONCE, ledgerAt, scrip } from './scrip-command.ts';
import { createKeyHere } from './served-here.ts';

describe('settings that are probably mistakes', { concurrency: COMMANDS_AT_ONCE }, () => {
  const keyCreate = ['key', 'create', '--account', 'acme'];

  for (const args of effort([['serve'], keyCreate], [['serve'], keyCreate, ['migrate']])) {
    test(`without --create, scrip ${args.join(' ')} refuses a ledger file whose folder does not exist`, async () => {
      const file = join(temporaryFolder(), 'mount', 'scrip.db');
      await assertOneLine(
        args,
        { ...ledgerAt(file), PORT: '0' },
        /^The folder .* does not exist: mount its disk, or add --create/,
      );
      assert(!existsSync(dirname(file)));
    });
  }

  test('scrip restore and scrip copy create a folder only with --create', async () => {
    const file = temporaryFile();
    const backup = join(dirname(file), 'backup.db');
    await createKeyHere(ledgerAt(file));
    await backUpFile(file, backup, () => {});
    for (const args of [
      ['restore', backup],
      ['copy', '--from', `file:${file}`],
    ]) {
      const to = join(temporaryFolder(), 'mount', 'scrip.db');
      await assertOneLine([...args, '--to', `file:${to}`], {}, /^The folder .* does not exist: /);
      const { code } = await scrip([...args, '--to', `file:${to}`, '--create']);
      assert.deepEqual([code, existsSync(to)], [0, true]);
    }
  });

  test('with --create, a command creates the folder of the ledger', async () => {
    const file = join(temporaryFolder(), 'new', 'deep', 'scrip.db');
    const { code, stderr } = await scrip(['migrate', '--create'], ledgerAt(file));
    assert.deepEqual([code, stderr, existsSync(file)], [0, '', true]);
  });

  test('a ledger file cannot have a name that means something else to SQLite', async () => {
    for (const name of [':memory:', 'file:scrip.db', '', 'FILE:scrip.db'])
      await assertOneLine(['migrate'], { DATABASE_URL: `file:${name}` }, /^DATABASE_URL must be file:PATH or postgres/);
  });

  test('if an environment variable is a misspelled setting, a command prints a warning with the correct name and still runs', async () => {
    const { code, stdout, stderr } = await scrip(['migrate'], { ...ledgerAt(temporaryFile()), RATE_LIMT: '9' });
    assert.deepEqual([code, stdout], [0, 'The ledger schema is up to date.\n']);
    assert.equal(stderr, 'Warning: Scrip does not read the variable RATE_LIMT; did you mean RATE_LIMIT?\n');
  });
});

const MISSPELLED: readonly (readonly [name: string, setting: string | null])[] = [
  ['RATE_LIMT', 'RATE_LIMIT'],
  ['RATE_LIMITT', 'RATE_LIMIT'],
  ['RATE_LIMOT', 'RATE_LIMIT'],
  ['RATE_LIIMT', 'RATE_LIMIT'],
  ['ARTE_LIMIT', 'RATE_LIMIT'],
  ['RATELIMIT', 'RATE_LIMIT'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['_PORT', 'PORT'],
  ['PORTS', 'PORT'],
  ['RATE_LMT', null],
  ['RATE_TIMIL', null],
  ['rate_limit', null],
  ['PORT', null],
  ['HOSTNAME', null],
  ['', null],
];

test('a variable counts as a misspelled setting if one character is extra, missing or wrong, or two adjacent characters are swapped', () => {
  for (const [name, setting] of MISSPELLED)
    assert.deepEqual(misspelledSettings({ [name]: 'x' }), setting === null ? [] : [[name, setting]], name);
  assert.deepEqual(misspelledSettings(Object.fromEntries(SETTING_NAMES.map((name) => [name, '']))), []);
});
