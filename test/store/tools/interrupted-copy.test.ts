// Tests interrupted copies: a server refuses to open an interrupted copy, and a copy cannot continue if the copy or its
// source has changed.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStores } from '../../../src/open-store.ts';
import { copyDatabase, copyInto, openTools } from '../../../src/open-tools.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { ReportProgress } from '../../../src/store/tools/ledger-tools.ts';
import { Running } from '../../cli/scrip-command.ts';
import { newKey } from '../../load/server-process.ts';
import { byHand } from '../outside.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { EndUser, problemsOf, temporaryFile } from '../temporary-ledger.ts';
import {
  assertRefused,
  at,
  auditAt,
  copying,
  fileAt,
  makeMany,
  openSource,
  quietly,
  sha256Of,
} from './copied-ledger.ts';

const options = { timeout: 240_000 };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

/** The number of end users in the source. */
const INTERRUPTED_OF = 2_500;
/**
 * The copy is interrupted after this many postings. At that point, the copy has loaded about 6,000 rows (two postings
 * and one other row for each end user) and committed about 5,000 of these rows.
 */
const INTERRUPTED_AFTER = 4_000;
const KILLED_OF = 6_000;

const UNFINISHED = { name: 'CannotOpen', message: /contains an unfinished copy; run the same `scrip copy` command/ };
const ANOTHER_LEDGER = /unfinished copy of another ledger, or of an earlier state of this source/;

class Interrupted extends Error {}

function failingAfter(postings: number): ReportProgress {
  return (progress) => {
    if (progress.step === 'copying' && progress.done >= postings) throw new Interrupted();
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

const DESTINATIONS = [
  ['to PostgreSQL', () => server.createDatabase(), (url: string) => query(url, changed('scrip.postings', 'ctid'))],
  [
    'to a file',
    async () => fileAt(temporaryFile()),
    async (url: string) => byHand(url.slice(5), changed('postings', 'posting')),
  ],
] as const;

function changed(postings: string, key: string): string {
  return `UPDATE ${postings} SET actor = 'key:2' WHERE ${key} = (SELECT ${key} FROM ${postings} WHERE kind = 'subtract' LIMIT 1)`;
}

describe('interrupted copies', options, () => {
  let file: string;
  before(async () => {
    file = await sourceOf(INTERRUPTED_OF);
  });

  for (const [what, makeDestination, change] of DESTINATIONS)
    describe(`interrupted copies ${what}`, () => {
      let url: string;
      before(async () => {
        url = await makeDestination();
        await interrupt(file, url);
      });

      test(`a copy ${what} that was interrupted during the audit of the source cannot be opened by a server`, async () => {
        const [source, to] = [await openSource(fileAt(file)), await makeDestination()];
        source.audit = () => Promise.reject(new Interrupted());
        await assert.rejects(copyInto(source, at(to), quietly), Interrupted);
        await source.close();
        await assert.rejects(openStores(at(to)), UNFINISHED);
      });

      test(`an interrupted copy ${what} cannot be opened by a server or a command, and cannot be copied`, async () => {
        for (const open of [openStores, openTools]) await assert.rejects(open(at(url)), UNFINISHED);
        await assertRefused(url, fileAt(temporaryFile()), /contains an unfinished copy/);
      });

      test(`an interrupted copy ${what} cannot be continued if its source was written to after the interruption`, async () => {
        const written = copyOf(file);
        const { ledger } = await openSqliteStore(written);
        await ledger.write([new EndUser(1, 1).subtract(1)], () => {});
        await ledger.close();
        await assertRefused(fileAt(written), url, ANOTHER_LEDGER);
      });

      test(`an interrupted copy ${what} cannot be continued if another API key was created in its source`, async () => {
        const changed = copyOf(file);
        await newKey(fileAt(changed), 'Another');
        await assertRefused(fileAt(changed), url, ANOTHER_LEDGER);
      });

      test(`an interrupted copy ${what} continues after the last end user that was copied completely`, async () => {
        const { resumedAfter, postings } = await copyDatabase(at(fileAt(file)), at(url), quietly);
        assert(resumedAfter > 1_000 && resumedAfter < INTERRUPTED_OF, `${resumedAfter} end users had been copied`);
        assert.equal(postings, 2 * INTERRUPTED_OF);
        assert.equal(await sha256Of(url), await sha256Of(fileAt(file)));
        assert.deepEqual(problemsOf(await auditAt(url)), []);
        await assertRefused(fileAt(file), url, /There is already a ledger at/);
      });

      test(`an interrupted copy ${what} cannot be completed if a copied row was changed by hand`, async () => {
        const damaged = await makeDestination();
        await interrupt(file, damaged);
        await change(damaged);
        for (const _ of ['once', 'again'])
          await assertRefused(fileAt(file), damaged, /differs from .*Another program might have changed the copy\./);
      });
    });

  test('a copy that was killed with kill -9 continues when the command is run again', async () => {
    const [file, url] = [await sourceOf(KILLED_OF), await server.createDatabase()];
    const running = new Running(['copy', '--from', fileAt(file), '--to', url], {});
    let copied = 0;
    for (let tries = 0; copied === 0; tries++) {
      assert(tries < 1_000, 'end users are copied');
      await sleep(20);
      copied = await endUsersAt(url).catch(() => 0);
    }
    running.kill('SIGKILL');
    assert.equal((await running.ended).code, 'SIGKILL');
    const { code, stdout, stderr } = await copying(fileAt(file), url);
    assert.equal(code, 0, stderr);
    const [, resumed] = /^Resumed: an earlier run had copied (\d+) end users/.exec(stdout) ?? assert.fail(stdout);
    assert(
      Number(resumed) >= copied && Number(resumed) < KILLED_OF,
      `${resumed} of ${KILLED_OF} end users had been copied`,
    );
  });
});

async function sourceOf(endUsers: number): Promise<string> {
  const file = temporaryFile();
  await makeMany(file, endUsers);
  return file;
}

/** @param file a ledger that is not in use */
function copyOf(file: string): string {
  const copy = temporaryFile();
  copyFileSync(file, copy);
  return copy;
}

async function interrupt(file: string, url: string): Promise<void> {
  await assert.rejects(copyDatabase(at(fileAt(file)), at(url), failingAfter(INTERRUPTED_AFTER)), Interrupted);
}
