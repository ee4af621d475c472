// Copying a whole ledger from one store to another: the same rows come out, and nothing is copied from under a server or
// over another ledger. On a real PostgreSQL. A copy that is interrupted has a file of its own.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from '../src/accounts/api-key.ts';
import { copyDatabase, openBeside } from '../src/app.ts';
import type { Database } from '../src/config.ts';
import type { Command } from '../src/ledger/command.ts';
import { DAY_MS } from '../src/ledger/instant.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../src/store/store.ts';
import { PostgresServer } from './postgres/postgres-server.ts';
import {
  assertCommandRefused,
  assertRefused,
  at,
  copying,
  fileAt,
  makeLedger,
  makeMany,
  openSource,
  quietly,
  sha256Of,
} from './store/copied-ledger.ts';
import { add, ledgerAt, scrip, serve } from './store/scrip-command.ts';
import { auditOf, balanceOf, EndUser, PEOPLE, temporaryFile, transactionsOf } from './store/temporary-ledger.ts';

/** For a group of tests, on a machine that is busy with others. */
const GROUP_MS_MAX = 240_000;
const options = { timeout: GROUP_MS_MAX };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

async function clockOf(url: string): Promise<number> {
  const source = await openSource(url);
  try {
    return (await source.head()).clock.at;
  } finally {
    await source.close();
  }
}

async function query(url: string, sql: string): Promise<void> {
  await server.query(sql, url.slice(url.lastIndexOf('/') + 1));
}

describe('a copy', options, () => {
  test('from a file to PostgreSQL, on to PostgreSQL and back to a file is the same ledger', async () => {
    const { file, secret, revoked } = await makeLedger();
    const [first, second, back] = [await server.createDatabase(), await server.createDatabase(), temporaryFile()];
    const { sha256, ...report } = await copyDatabase(at(fileAt(file)), at(first), quietly);
    assert.deepEqual([report.accounts, report.keys, report.endUsers, report.resumedBehind], [2, 2, 6, 0]);
    await copyDatabase(at(first), at(second), quietly);
    await copyDatabase(at(second), at(fileAt(back)), quietly);
    for (const url of [fileAt(file), first, second, fileAt(back)]) assert.equal(await sha256Of(url), sha256);

    const later = Date.now() + DAY_MS;
    const stores = [
      await openSqliteStore(file, () => later),
      await openPostgresStore({ ...(at(second) as Extract<Database, { kind: 'postgres' }>), now: `${later}::bigint` }),
      await openSqliteStore(back, () => later),
    ];
    const [original, ...copies] = await Promise.all(stores.map(seen));
    const keys = await (stores[0] as Store).apiKeys.list();
    for (const copy of copies) assert.deepEqual(copy, original);
    for (const store of stores) {
      assert.deepEqual(await store.apiKeys.find(hashOf(secret)), { id: 1, account: 1, scope: 'write' });
      assert.equal(await store.apiKeys.find(hashOf(revoked)), null);
      assert.deepEqual(await store.apiKeys.list(), keys);
      await store.write([PEOPLE.oneTime.add(3), PEOPLE.renewing.renew(), PEOPLE.rich.add(1)]);
      assert.deepEqual(await auditOf(store), { findings: [], store: [] }, 'and it goes on being whole');
      await store.close();
    }
  });

  test('from a file to a file keeps clock and order, and its server answers with the same key', async (t) => {
    const { file, secret } = await makeLedger();
    const to = temporaryFile();
    await copyDatabase(at(fileAt(file)), at(fileAt(to)), quietly);
    const dump = (path: string) => {
      const db = new DatabaseSync(path, { readOnly: true });
      const rows = [
        db.prepare('SELECT at, sequence, checksum FROM clock').all(),
        db.prepare('SELECT hex(transaction_id), hex(cycle_id) FROM postings ORDER BY end_user, account, posting').all(),
      ];
      db.close();
      return rows;
    };
    assert.deepEqual(dump(to), dump(file));
    const { url } = await serve(t, to);
    assert.equal((await add(url, secret)).status, 200);
  });

  test('takes the answers to idempotency keys along, refusals of end users never heard of too', async () => {
    const [file, back, database] = [temporaryFile(), temporaryFile(), await server.createDatabase()];
    const [ada, nobody] = [new EndUser(1, 1), new EndUser(2, 7)];
    const keyed = (command: Command, requestId: string) =>
      ({ ...command, idempotency: { key: `ünsafe "key" \\ 1`, requestId } }) as Command;
    const commands = (requestId: string) => [keyed(ada.add(10), requestId), keyed(nobody.subtract(1), requestId)];
    const store = await openSqliteStore(file);
    const outcomes = await store.write(commands('first'));
    await store.write(Array.from({ length: 1_500 }, (_, index) => keyed(new EndUser(3, index).add(1), 'many')));
    await store.close();
    await copyDatabase(at(fileAt(file)), at(database), quietly);
    await copyDatabase(at(database), at(fileAt(back)), quietly);
    const copies = [
      await openPostgresStore(at(database) as Extract<Database, { kind: 'postgres' }>),
      await openSqliteStore(back),
    ];
    for (const copy of copies) {
      const again = outcomes.map((outcome) => ({ ...outcome, replayOf: 'first' }));
      assert.deepEqual(await copy.write(commands('second')), again);
      await copy.close();
    }
  });

  test('of an empty ledger is an empty ledger', async () => {
    const [file, to] = [temporaryFile(), await server.createDatabase()];
    await scrip(['migrate'], ledgerAt(file));
    assert.equal((await copying(fileAt(file), to)).code, 0);
    assert.equal(await sha256Of(to), await sha256Of(fileAt(file)));
  });

  test('never has an earlier clock than its source, even where that is ahead of all clocks', async () => {
    const { file } = await makeLedger();
    const [there, back] = [await server.createDatabase(), temporaryFile()];
    const ahead = Date.now() + 400 * DAY_MS;
    await (await openSqliteStore(file, () => ahead)).close();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    for (const url of [fileAt(file), there, fileAt(back)]) assert.equal(await clockOf(url), ahead);
  });

  test('of one end user with more postings than are held at once keeps their order', async () => {
    const [file, there, back] = [temporaryFile(), await server.createDatabase(), temporaryFile()];
    const store = await openSqliteStore(file);
    const ada = new EndUser(1, 1);
    await store.write([ada.add(1_000_000)]);
    for (let batch = 0; batch < 5; batch++)
      await store.write(Array.from({ length: 500 }, (_, index) => ada.subtract(index + 1)));
    const transactions = await transactionsOf(store, ada);
    await store.close();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    const copied = await openSqliteStore(back);
    assert.deepEqual(await transactionsOf(copied, ada), transactions);
    await copied.close();
  });

  test('of 10,000 postings says how far it is', async (t) => {
    const [file, there, back] = [temporaryFile(), await server.createDatabase(), temporaryFile()];
    await makeMany(file, 5_000);
    const began = performance.now();
    const { code, stdout, stderr } = await copying(fileAt(file), there);
    const tookMs = performance.now() - began;
    assert.equal(code, 0, stderr);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    t.diagnostic(`to PostgreSQL ${Math.round(tookMs)} ms, back ${Math.round(performance.now() - began - tookMs)} ms`);
    assert.match(stdout, /5000 end users, 5000 cycles and 10000 postings/);
    assert.match(stderr, /^copying: \d+ of 10000 postings, \d+ %\n[\s\S]*comparing: 20000 of 20000 postings, 100 %\n$/);
  });
});

async function seen(store: Store): Promise<unknown> {
  const users = Object.values(PEOPLE);
  return Promise.all(users.map(async (user) => [await balanceOf(store, user), await transactionsOf(store, user)]));
}

describe('a copy is refused', options, () => {
  test('while a server runs on the source or the destination', async (t) => {
    const { file } = await makeLedger();
    const [there, empty] = [await server.createDatabase(), await server.createDatabase()];
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await stopped(t, file, async () =>
      assertRefused(fileAt(file), fileAt(temporaryFile()), /is in use by another Scrip process; stop that one first/),
    );
    const says = /is in use by another Scrip process; stop every server on it first/;
    await stopped(t, '', () => assertRefused(there, fileAt(temporaryFile()), says), { DATABASE_URL: there });
    await stopped(t, '', () => assertRefused(fileAt(file), empty, says), { DATABASE_URL: empty });
  });

  test('when the destination holds another ledger, even if it is but one key', async () => {
    const { file } = await makeLedger();
    const [there, other] = [await server.createDatabase(), temporaryFile()];
    for (const url of [there, fileAt(other)]) {
      const { code } = await scrip(['key', 'create', '--account', 'Other'], { DATABASE_URL: url });
      assert.equal(code, 0);
      // The connections of the command that made it are gone a moment after it.
      await sleep(200);
      await assertRefused(fileAt(file), url, /holds a ledger already/);
    }
  });

  test('when there is nothing to copy, or nowhere to, in one sentence without a password', async () => {
    const { file } = await makeLedger();
    const missing = await server.createDatabase();
    await assertCommandRefused(fileAt(temporaryFile()), fileAt(temporaryFile()), /^There is no ledger at .* to copy/);
    await assertCommandRefused(
      missing,
      fileAt(temporaryFile()),
      /^There is no ledger of this version at postgres:\/\/127/,
    );
    await assertCommandRefused(fileAt(file), fileAt(file), /are the same ledger/);
    await assertCommandRefused('mysql://root:hunter2@db', fileAt(file), /^--from must be file:PATH or postgres/);
    await assertCommandRefused(
      fileAt(file),
      'postgres://u:hunter2@127.0.0.1:1/x',
      /^PostgreSQL cannot be used \((?!.*hunter2)/,
    );
  });

  test('when the source is broken, before anything is written', async () => {
    const { file } = await makeLedger();
    const to = temporaryFile();
    const db = new DatabaseSync(file);
    db.exec(
      `UPDATE holdings SET remaining = remaining - 1 WHERE ends_at = (SELECT max(ends_at) FROM holdings WHERE remaining > 0 AND type <> 'end-user')`,
    );
    db.close();
    await assertRefused(fileAt(file), fileAt(to), /is not copied: the ledger is broken in \d+ places/);
    assert.deepEqual(await (await openBeside(at(fileAt(to)))).apiKeys.list(), []);
  });

  test('when the source is written to meanwhile, in a sentence at its end', async () => {
    const { file } = await makeLedger();
    const there = await server.createDatabase();
    let done = false;
    const meanwhile = () => {
      if (done) return;
      done = true;
      const db = new DatabaseSync(file);
      db.exec('UPDATE api_keys SET revoked_at = 1 WHERE key_id = 1');
      db.close();
    };
    await assert.rejects(copyDatabase(at(fileAt(file)), at(there), meanwhile), /was written to while it was copied/);
  });

  test('no writer that is not seen gets at a database while it is copied', async () => {
    const { file } = await makeLedger();
    const there = await server.createDatabase();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    const source = await openSource(there);
    const write = `SET lock_timeout = '100ms'; UPDATE scrip.cycles SET remaining = 0`;
    await assert.rejects(query(there, write), /lock timeout/);
    await source.close();
  });
});

/** Does the work while a server runs. */
async function stopped(
  t: TestContext,
  file: string,
  work: () => Promise<void>,
  environment: Record<string, string> = {},
): Promise<void> {
  const running = await serve(t, file, [], environment);
  await work();
  running.kill('SIGTERM');
  assert.equal((await running.ended).code, 0);
}
