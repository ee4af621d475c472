// Tests the output and exit codes of `scrip verify` and `scrip digest`, including cases in which the reader of the
// output is slow or closes the pipe.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { effort } from '../effort.ts';
import { startingEnvironment } from '../run-folder.ts';
import { byHand } from '../store/outside.ts';
import { openFor, openInPlace } from '../store/sqlite/sqlite-ledger.ts';
import { makeHistory, NOON, PEOPLE, problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { auditAt, makeMany } from '../store/tools/copied-ledger.ts';
import { ledgerAt, scrip } from './scrip-command.ts';

let file = '';
before(async () => {
  file = temporaryFile();
  await makeHistory(file);
});

function changed(sql: string): string {
  const copy = temporaryFile();
  copyFileSync(file, copy);
  byHand(copy, sql);
  return copy;
}

test('`scrip verify` passes on an intact ledger and exits with code 0', async () => {
  const { code, stdout, stderr } = await scrip(['verify'], ledgerAt(file));
  assert.equal(stdout, 'Verification passed. 8 end users and 57 postings checked.\n');
  assert.deepEqual([code, stderr], [0, '']);
});

test('`scrip verify` passes on an intact ledger while a server writes to it', async (t) => {
  const busy = changed('SELECT 1');
  const ledger = await openFor(t, busy);
  const { oneTime, renewing, rich, replacing } = PEOPLE;
  let isVerified = false;
  let writes = 0;
  const verified = scrip(['verify'], ledgerAt(busy)).finally(() => {
    isVerified = true;
  });
  for (; !isVerified; writes++) {
    await ledger.write([oneTime.add(2), oneTime.subtract(1), renewing.subtract(1), rich.stopCycle()]);
    await ledger.write([replacing.startCycle(3, 7, 'replace')]);
  }
  const { code, stdout, stderr } = await verified;
  assert.match(stdout, /^Verification passed\. 8 end users and \d+ postings checked\.\n$/);
  assert.deepEqual([code, stderr], [0, '']);
  assert(writes > 1, 'the ledger was written to during the verification');
});

const NAMED: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  [
    'an extra credit in a stored balance',
    'UPDATE balances SET remaining = remaining + 1 WHERE remaining = 27',
    new RegExp(
      `^invariant 1, account 1, end user ${PEOPLE.oneTime.key.endUser}: cycle \\S+ is stored with remaining 28; its postings say 27$`,
      'm',
    ),
  ],
  [
    'wrong totals',
    'DELETE FROM daily_totals',
    /^store: the totals of account 1 .*run `scrip migrate --totals` to rebuild/m,
  ],
  [
    'a missing posting',
    `DELETE FROM postings WHERE kind = 'subtract' AND amount < -1000`,
    new RegExp(`^invariant 1, account 1, end user ${PEOPLE.rich.key.endUser}: `, 'm'),
  ],
  ['a ledger clock that was set back', 'UPDATE clock SET at = at - 1', /^store: the clock of the ledger was changed/m],
  [
    'a posting without an actor',
    `UPDATE postings SET actor = '' WHERE kind = 'stop-cycle'`,
    /^invariant 4, .* has no actor$/m,
  ],
];

for (const [what, sql, says] of NAMED.slice(0, effort(2, NAMED.length))) {
  test(`\`scrip verify\` reports ${what} and exits with code 1`, async () => {
    const { code, stdout, stderr } = await scrip(['verify'], ledgerAt(changed(sql)));
    assert.match(stdout, says);
    assert.match(
      stdout,
      /^Verification failed: (?:1 problem|[1-9]\d* problems) found\. \d+ end users? and \d+ postings checked\.\n$/m,
    );
    assert.deepEqual([code, stderr], [1, '']);
  });
}

test('`scrip migrate --totals` repairs wrong totals', async () => {
  const wrong = changed('DELETE FROM daily_totals');
  assert.equal((await scrip(['migrate', '--totals'], ledgerAt(wrong))).code, 0);
  assert.deepEqual(problemsOf(await auditAt(`file:${wrong}`)), []);
});

async function digestOf(ledger: string): Promise<string> {
  const { code, stdout, stderr } = await scrip(['digest'], ledgerAt(ledger));
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^scrip-digest-1 at=\S+ end_users=\d+ postings=\d+ through=\S+ sha256=[0-9a-f]{64}\n$/);
  return stdout;
}

function digestFile(text: string): string {
  const path = join(temporaryFolder(), 'digests');
  writeFileSync(path, text);
  return path;
}

test('`scrip verify --digest` detects postings that were changed or removed after the digest was printed', async (t) => {
  const early = await digestOf(file);
  const grown = changed('SELECT 1');
  const ledger = await openInPlace(t, grown, { wall: NOON + 60 * 86_400_000 });
  await ledger.write([PEOPLE.oneTime.add(5), PEOPLE.renewing.settle()]);
  await ledger.close();
  const digests = digestFile(early + (await digestOf(grown)));
  const verified = await scrip(['verify', '--digest', digests], ledgerAt(grown));
  assert.equal(verified.code, 0, verified.stdout);
  assert.match(verified.stdout, /^All 2 digests match: /m);
  assert.equal(
    (await scrip(['verify', '--digest', digests], ledgerAt(file))).code,
    1,
    'postings of the second digest are missing',
  );
  const tampered = changed(`UPDATE postings SET note = 'x' WHERE note IS NOT NULL`);
  assert.deepEqual(problemsOf(await auditAt(`file:${tampered}`)), [], 'only the digest detects a changed note');
  const { code, stdout } = await scrip(['verify', '--digest', digestFile(early)], ledgerAt(tampered));
  assert.equal(code, 1);
  assert.match(stdout, /^digest of 2026-02-21T12:00:00\.000Z: postings up to this instant have changed/m);
});

test('`scrip verify --digest` fails on a file without digests', async () => {
  const { code, stderr } = await scrip(['verify', '--digest', digestFile('something else\n')], ledgerAt(file));
  assert.equal(code, 1);
  assert.match(stderr, /is not a digest file/);
});

test('`scrip digest` fails if postings violate the rules of the ledger', async () => {
  const impossible = changed(`UPDATE postings SET period = period + 1 WHERE kind = 'stop-cycle'`);
  const { code, stdout, stderr } = await scrip(['digest'], ledgerAt(impossible));
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^Cannot compute a digest: /);
});

describe('scrip verify with long output', () => {
  /** The command finds a problem for each end user, so the output is much longer than a pipe's buffer. */
  const END_USERS = effort(1_000, 3_000);
  let broken = '';
  before(async () => {
    broken = temporaryFile();
    await makeMany(broken, END_USERS);
    byHand(broken, 'UPDATE balances SET remaining = remaining - 1 WHERE remaining > 0');
  });

  async function shell(line: string) {
    const main = join(import.meta.dirname, '../../src/main.ts');
    const child = spawn('bash', ['--norc', '-c', `set -o pipefail; ${line}`], {
      env: { ...startingEnvironment(), ...ledgerAt(broken), SCRIP: `${process.execPath} ${main}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await ended, lines: stdout.trimEnd().split('\n'), stderr };
  }

  test('`scrip verify` prints its whole output, with a summary at the end, to a reader that starts reading after two seconds', async () => {
    const { code, lines, stderr } = await shell('$SCRIP verify | { sleep 2; cat; }');
    assert.deepEqual([code, stderr], [1, '']);
    const summary = new RegExp(
      `^Verification failed: (\\d+) problems found\\. ${END_USERS} end users and ${2 * END_USERS} postings checked\\.$`,
    );
    const [, problems] = summary.exec(lines.at(-1) ?? '') ?? [];
    assert.equal(Number(problems), lines.length - 1);
    assert(lines.length > END_USERS);
  });

  test('`scrip verify` stops silently with exit code 1 when its reader closes the pipe after the first problem', async () => {
    const { code, lines, stderr } = await shell('$SCRIP verify | head -n 1');
    assert.deepEqual([code, stderr], [1, '']);
    assert.match(lines.join('\n'), /^invariant \d, account 1, end user \S+: .+$/);
  });

  test('if standard output is redirected to a full disk, a command prints one line and exits with code 1', {
    skip: !existsSync('/dev/full') && 'this system has no /dev/full',
  }, async () => {
    for (const command of ['key list', 'digest', 'export --account "Lovelace Ltd" --format csv']) {
      const { code, stderr } = await shell(`$SCRIP ${command} > /dev/full`);
      const errors = stderr.replaceAll(/^exporting: .*\n/gm, '');
      assert.match(errors, /^Cannot write to standard output \(ENOSPC[^\n]*\)\.\n$/, command);
      assert.equal(code, 1);
    }
  });

  test('a command whose output pipe is already closed exits with code 0 and prints no stack trace', async () => {
    for (const command of ['key list', 'export --account "Lovelace Ltd" --format csv']) {
      const { code, stderr } = await shell(`$SCRIP ${command} | true`);
      assert.deepEqual([code, stderr.replaceAll(/^exporting: .*\n/gm, '')], [0, ''], command);
    }
  });
});
