// A copy of a ledger that is interrupted: nobody serves what is there of it, and it goes on where it stopped, unless
// something else has changed in between. On a real PostgreSQL.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { copyDatabase } from '../src/app.ts';
import type { CopyProgress } from '../src/store/copy.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { PostgresServer } from './postgres/postgres-server.ts';
import {
  assertCommandRefused,
  assertRefused,
  at,
  copying,
  fileAt,
  makeMany,
  quietly,
  sha256Of,
} from './store/copied-ledger.ts';
import { Running, scrip } from './store/scrip-command.ts';
import { EndUser, temporaryFile } from './store/temporary-ledger.ts';

/** For all of them, on a machine that is busy with others. */
const options = { timeout: 240_000 };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

/** End users, and the postings after which it is interrupted: one commit, of 5,000 records, is behind it by then. */
const INTERRUPTED_OF = 4_000;
const INTERRUPTED_AFTER = 6_000;

class Interrupted extends Error {}

/** A progress report that fails as soon as so many postings are copied. */
function failingAfter(postings: number): (progress: CopyProgress) => void {
  return (progress) => {
    if (progress.step === 'copying' && progress.postings >= postings) throw new Interrupted();
  };
}

async function endUsersAt(url: string): Promise<number> {
  const database = url.slice(url.lastIndexOf('/') + 1);
  const { rows } = await server.query(`SELECT count(*)::integer AS count FROM scrip.end_users`, database);
  return rows[0].count;
}

async function query(url: string, sql: string): Promise<void> {
  await server.query(sql, url.slice(url.lastIndexOf('/') + 1));
}

describe('an interrupted copy', options, () => {
  for (const [what, to] of [
    ['to PostgreSQL', () => server.createDatabase()],
    ['to a file', async () => fileAt(temporaryFile())],
  ] as const) {
    test(`${what} is not served, and goes on behind what is complete`, async () => {
      const [file, url] = [temporaryFile(), await to()];
      await makeMany(file, INTERRUPTED_OF);
      await assert.rejects(copyDatabase(at(fileAt(file)), at(url), failingAfter(INTERRUPTED_AFTER)), Interrupted);
      const served = await scrip(['serve'], { DATABASE_URL: url, PORT: '0' });
      assert.match(served.stderr, /holds an unfinished copy/);
      assert.equal(served.code, 1);
      await assertRefused(url, fileAt(temporaryFile()), /holds an unfinished copy/);
      const { resumedBehind, postings } = await copyDatabase(at(fileAt(file)), at(url), quietly);
      assert(resumedBehind > 1_000 && resumedBehind < INTERRUPTED_OF, `${resumedBehind} end users were there`);
      assert.equal(postings, 2 * INTERRUPTED_OF);
      assert.equal(await sha256Of(url), await sha256Of(fileAt(file)));
      await assertRefused(fileAt(file), url, /holds a ledger already/);
    });
  }

  test('that was killed with -9 goes on when the command is run again', async () => {
    const [file, there] = [temporaryFile(), await server.createDatabase()];
    await makeMany(file, 10_000);
    const running = new Running(['copy', '--from', fileAt(file), '--to', there], {});
    let copied = 0;
    while (copied === 0) {
      await sleep(20);
      copied = await endUsersAt(there).catch(() => 0);
    }
    running.kill('SIGKILL');
    assert.equal((await running.ended).code, 'SIGKILL');
    const { code, stdout, stderr } = await copying(fileAt(file), there);
    assert.equal(code, 0, stderr);
    const [, resumed] = /^(\d+) end users were there from an earlier run/.exec(stdout) ?? assert.fail(stdout);
    assert(Number(resumed) >= copied && Number(resumed) < 10_000, `${resumed} of 10000 were there`);
  });

  test('whose source was written to in between is refused', async () => {
    const [file, there] = [temporaryFile(), await server.createDatabase()];
    await makeMany(file, INTERRUPTED_OF);
    await assert.rejects(copyDatabase(at(fileAt(file)), at(there), failingAfter(INTERRUPTED_AFTER)), Interrupted);
    const store = await openSqliteStore(file);
    await store.write([new EndUser(1, 1).subtract(1)]);
    await store.close();
    await assertCommandRefused(
      fileAt(file),
      there,
      /part of a copy of another ledger, or of this one before it changed/,
    );
  });

  test('with a row changed by hand is found out by the comparison, and stays unfinished', async () => {
    const [file, there] = [temporaryFile(), await server.createDatabase()];
    await makeMany(file, INTERRUPTED_OF);
    await assert.rejects(copyDatabase(at(fileAt(file)), at(there), failingAfter(INTERRUPTED_AFTER)), Interrupted);
    const row = `ctid = (SELECT ctid FROM scrip.postings WHERE kind = 'subtract' LIMIT 1)`;
    await query(there, `UPDATE scrip.postings SET actor = 'key:2' WHERE ${row}`);
    for (const _ of ['once', 'again'])
      await assertRefused(fileAt(file), there, /differs from .*something else changed it/);
  });
});
