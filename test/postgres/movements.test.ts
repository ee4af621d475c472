// Movements in PostgreSQL: many processes write and add them up at once, an older one may leave its own out, and verify
// sees when they are not what the postings say.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPool } from '../../src/store/postgres/connection.ts';
import { MovementSummary } from '../../src/store/postgres/movement-summary.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { auditOf, EndUser } from '../store/temporary-ledger.ts';
import { OPTIONS } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';
import { withSharedLedger } from './shared-ledger.ts';

const WHOLE = { findings: [], store: [] };
const DAYS = { days: 2 };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

const people = (count: number) => Array.from({ length: count }, (_, index) => new EndUser(1, index));

async function fill(store: Store): Promise<void> {
  await store.write(people(50).map((user, index) => user.add(10, 1 + (index % 9))));
  await store.write(people(50).map((user) => user.subtract(3)));
}

test('several processes write and add up at once, and nothing is lost or counted twice', async () => {
  await withSharedLedger(server, async ({ stores, url, database }) => {
    const pools = stores.map(() => openPool(url, 2));
    let isWriting = true;
    const summing = pools.map(async (pool) => {
      const summary = new MovementSummary(pool, false);
      while (isWriting) await summary.addUp();
      await summary.addUp();
    });
    await Promise.all(
      stores.map(async (store, number) => {
        const own = people(40).map((_, index) => new EndUser(1, 100 * number + index));
        for (let round = 0; round < 25; round++) {
          await store.write(own.map((user, index) => user.add(10, 1 + (index % 9))));
          await store.write(own.map((user) => user.subtract(3)));
        }
      }),
    );
    isWriting = false;
    await Promise.all(summing);
    await Promise.all(pools.map((pool) => pool.end()));
    const { rows } = await server.query('SELECT count(*)::int AS count FROM scrip.recent_movements', database);
    assert.equal(rows[0].count, 0, 'all are added up');
    for (const store of stores) {
      const { outstanding, endUsersWithCredits } = await store.accountReads.overview(1, DAYS);
      assert.deepEqual([outstanding, endUsersWithCredits], [7n * 25n * 120n, 120]);
    }
  });
});

test('a movement that was changed by hand, or that an older process left out, is found and put right', async () => {
  const url = await server.createDatabase();
  const database = new URL(url).pathname.slice(1);
  const store = await openPostgresStore({ ...OPTIONS, url });
  await fill(store);
  const pool = openPool(url, 1);
  await new MovementSummary(pool, false).addUp();
  await pool.end();
  await fill(store);
  const expected = await store.accountReads.overview(1, DAYS);
  const last = '(SELECT max(slot) FROM scrip.movements WHERE series = 0)';
  for (const sql of [
    `UPDATE scrip.movements SET credits = credits + 1 WHERE slot = ${last}`,
    `UPDATE scrip.movements SET count = count - 1 WHERE slot = ${last}`,
    'UPDATE scrip.movements SET count = count + 1 WHERE series = 4',
    'UPDATE scrip.movements SET account = 2 WHERE series = 1',
    'DELETE FROM scrip.movements',
    'DELETE FROM scrip.recent_movements',
    'DELETE FROM scrip.movements; DELETE FROM scrip.recent_movements',
  ]) {
    await server.query(sql, database);
    const { findings, store: faults } = await auditOf(store);
    if (faults.length === 0 && sql.includes('recent')) continue;
    assert.deepEqual(findings, []);
    assert.match(faults.join('\n'), /^the totals of account \d \(series \d, slot \d+\) lack -?\d+ credits/, sql);
    await Promise.all([store.addUpTotals(), store.addUpTotals(), store.addUpTotals()]);
    assert.deepEqual(await auditOf(store), WHOLE, sql);
    const { outstanding, endUsersWithCredits } = await store.accountReads.overview(1, DAYS);
    assert.deepEqual([outstanding, endUsersWithCredits], [expected.outstanding, expected.endUsersWithCredits], sql);
  }
  await store.close();
});

test('adding up again beside a server that writes changes nothing of what it does', async () => {
  await withSharedLedger(server, async ({ stores: [writing, counting] }) => {
    let isCounting = true;
    const counted = (async () => {
      for (let times = 0; times < 10; times++) await counting.addUpTotals();
      isCounting = false;
    })();
    let rounds = 0;
    for (; isCounting; rounds++) await fill(writing);
    await counted;
    const { outstanding } = await writing.accountReads.overview(1, DAYS);
    assert.equal(outstanding, BigInt(rounds) * 350n);
  });
});

test('a ledger from before there were movements gets them from its postings', async () => {
  const url = await server.createDatabase();
  const database = new URL(url).pathname.slice(1);
  const old = await openPostgresStore({ ...OPTIONS, url });
  await fill(old);
  const { asOf: _, ...expected } = await old.accountReads.overview(1, DAYS);
  await old.close();
  await server.query(
    `DROP TABLE scrip.movements, scrip.recent_movements; DROP INDEX scrip.end_users_by_account, scrip.postings_by_account;
     ALTER TABLE scrip.end_users DROP COLUMN chain; ALTER TABLE scrip.postings DROP COLUMN note; ALTER TABLE scrip.api_keys DROP COLUMN name, DROP COLUMN last_used_at;
     DELETE FROM scrip.migrations WHERE number > 4`,
    database,
  );
  const store = await openPostgresStore({ ...OPTIONS, url });
  const { asOf, ...overview } = await store.accountReads.overview(1, DAYS);
  assert.deepEqual(overview, expected);
  assert.deepEqual(await auditOf(store), WHOLE);
  await store.close();
});
