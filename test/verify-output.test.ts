// What becomes of `scrip verify` when it has a great deal to say, and whoever reads is slow or has had enough.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, test } from 'node:test';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { byHand } from './store/outside.ts';
import { ledgerAt } from './store/scrip-command.ts';
import { EndUser, temporaryFile } from './store/temporary-ledger.ts';

/** Far more findings than any pipe holds. */
const END_USERS = 3_000;
const BATCH = 500;

const file = temporaryFile();
before(async () => {
  const store = await openSqliteStore(file);
  for (let index = 0; index < END_USERS; index += BATCH)
    await store.write(Array.from({ length: BATCH }, (_, place) => new EndUser(1, index + place).add(5)));
  await store.close();
  byHand(file, 'UPDATE postings SET amount = amount + 1');
});

/** What came of a line of shell in which `$SCRIP` is the command. */
async function shell(line: string) {
  const child = spawn('bash', ['--norc', '-c', `set -o pipefail; ${line}`], {
    env: {
      ...process.env,
      ...ledgerAt(file),
      SCRIP: `${process.execPath} ${join(import.meta.dirname, '../src/main.ts')}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, lines: stdout.trimEnd().split('\n'), stderr };
}

test('whoever reads late reads everything', async () => {
  const { code, lines, stderr } = await shell('$SCRIP verify | { sleep 2; cat; }');
  assert.deepEqual([code, stderr], [1, '']);
  const [, places] = /^The ledger is broken in (\d+) places: 3000 end users/.exec(lines.at(-1) ?? '') ?? [];
  assert.equal(Number(places), lines.length - 1);
  assert(lines.length > END_USERS);
});

test('whoever reads the end of it gets that', async () => {
  const { code, lines, stderr } = await shell('$SCRIP verify | tail -n 1');
  assert.deepEqual([code, stderr], [1, '']);
  assert.match(lines.join('\n'), /^The ledger is broken in \d+ places: 3000 end users and 3000 postings checked\.$/);
});

test('once nobody reads any more it ends, without a word, and with what it had found in its exit code', async () => {
  const { code, lines, stderr } = await shell('$SCRIP verify | head -n 1');
  assert.deepEqual([code, stderr], [1, '']);
  assert.match(lines.join('\n'), /^invariant \d, account 1, end user \S+: .+$/);
});

test('nor does any other command end with a stack when nobody reads', async () => {
  const { code, stderr } = await shell('$SCRIP key list | true');
  assert.deepEqual([code, stderr], [0, '']);
});
