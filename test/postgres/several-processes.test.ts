// Several processes on one database: what they do to the same end users at the same time is what one process would have
// done, one command after the other, and none of them waits for another in a circle.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { SEQUENCE_COUNT, transactionId } from '../../src/ledger/transaction-id.ts';
import type { Store } from '../../src/store/store.ts';
import { auditOf, balanceOf, EndUser, NOON, transactionsOf } from '../store/temporary-ledger.ts';
import { openOnMovedClock } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';
import { type SharedLedger, tally, withSharedLedger } from './shared-ledger.ts';

const TEST_MS_MAX = 60_000;

let server: PostgresServer;
before(async () => {
  // Rows are found as in a large table, in the order in which they are asked for. In one of 200 rows the planner would
  // scan all, which puts every batch in the same order by itself, and a batch that did not sort would not be noticed.
  const asInLargeTable = { enable_hashjoin: 'off', enable_mergejoin: 'off', enable_seqscan: 'off' };
  server = await PostgresServer.start({ fsync: 'off', deadlock_timeout: '50ms', ...asInLargeTable });
});
after(() => server.remove());

function it(sentence: string, work: (ledger: SharedLedger) => Promise<void>): void {
  test(sentence, { timeout: TEST_MS_MAX }, () => withSharedLedger(server, work));
}

describe('several stores on one database', () => {
  it('300 subtractions of 1 from 100, over three stores at once, are 100', async ({ stores }) => {
    const hot = new EndUser(1, 1);
    await stores[0].write([hot.add(100)]);
    const writes = Array.from({ length: 300 }, (_, index) => storeOf(stores, index).write([hot.subtract(1)]));
    const outcomes = (await Promise.all(writes)).flat();
    assert.deepEqual(tally(outcomes), { accepted: 100, InsufficientFunds: 200 });
    for (const store of stores) assert.equal(await balanceOf(store, hot), 0);
  });

  it('cycles that are started at once, for an end user never heard of, are one', async ({ stores }) => {
    const users = Array.from({ length: 5 }, (_, index) => new EndUser(1, index));
    const starts = Array.from({ length: 12 }, (_, index) =>
      storeOf(stores, index).write(users.map((user) => user.startCycle(10))),
    );
    const answers = await Promise.all(starts);
    for (const [index, user] of users.entries()) {
      const outcomes = answers.map((outcomes) => outcomes[index] ?? null);
      assert.deepEqual(tally(outcomes), { accepted: 1, CycleAlreadyActive: 11 });
      const shown = outcomes.map((outcome) => (outcome && 'cycle' in outcome ? outcome.cycle?.id : null));
      assert.equal(new Set(shown).size, 1, 'everybody is shown the one cycle');
      assert.equal((await transactionsOf(stores[2], user)).length, 1);
    }
  });

  it('the ids of an end user ascend in the order of its writes, whichever store they came through', async (ledger) => {
    const [ada, bob] = [new EndUser(1, 1), new EndUser(2, 1)];
    for (let round = 0; round < 30; round++)
      await storeOf(ledger.stores, round).write([ada.add(round + 1), bob.add(1), ada.add(1_000 + round)]);
    const written = (await transactionsOf(ledger.stores[0], ada)).toReversed();
    assert.deepEqual(
      written.map(({ amount }) => amount),
      Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? index / 2 + 1 : 1_000 + (index - 1) / 2)),
    );
    const ids = written.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 60);
  });

  it('who is added while a batch waits for its locks is not touched by it without one', async ({ stores, url }) => {
    const [hot, late] = [new EndUser(1, 1), new EndUser(1, 2)];
    await stores[0].write([hot.add(1)]);
    const holder = await connected(url);
    await holder.query('BEGIN; SELECT FROM scrip.end_users FOR UPDATE');
    const waiting = stores[1].write([hot.add(1), late.subtract(100)]);
    await untilSomebodyWaits(holder);
    await stores[2].write([late.add(100)]);
    await holder.query('COMMIT');
    await holder.end();
    const refused = { refused: 'InsufficientFunds', requested: 100, available: 0 };
    assert.deepEqual(await waiting, [ACCEPTED, refused]);
    assert.equal(await balanceOf(stores[1], late), 100);
  });
});

test('renewals that all stores enter at once are entered once', { timeout: TEST_MS_MAX }, async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const open = () => openOnMovedClock(url, () => wall);
  const stores = [await open(), await open(), await open()] as const;
  t.after(() => Promise.all(stores.map((store) => store.close())));
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  await stores[0].write(users.map((user) => user.startCycle(10, 1)));
  wall += 3 * DAY_MS;
  const renewals = Array.from({ length: 6 }, async (_, index) => {
    const store = storeOf(stores, index);
    const due = await store.renewalsDue(users.length);
    return store.write(due.map((key) => ({ kind: 'renew', ...key })));
  });
  for (const outcomes of await Promise.all(renewals)) assert(outcomes.every((outcome) => outcome?.refused === null));
  for (const user of users) {
    const kinds = (await transactionsOf(stores[1], user)).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['renew', 'renew', 'renew', 'start-cycle']);
    assert.equal(await balanceOf(stores[2], user), 10);
  }
  for (const store of stores) assert.deepEqual(await store.renewalsDue(1), []);
  assert.deepEqual(await auditOf(stores[0]), { findings: [], store: [] });
});

test('an end user whose rows are of a later time is not read at an earlier one', async (t) => {
  const url = await server.createDatabase();
  const store = await openOnMovedClock(url, () => NOON);
  t.after(() => store.close());
  const ada = new EndUser(1, 1);
  await store.write([ada.add(10, 1)]);
  // As another process leaves it that has seen a later time, which it has not shared yet.
  await setLatest(url, transactionId({ at: NOON + DAY_MS, sequence: 1, tail: '000000000000' }));
  const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
  assert.deepEqual(await store.write([ada.subtract(1)]), [refused]);
  assert.equal(await balanceOf(store, ada), 0);
});

test('an instant that has lasted so long that its ids run short is left', async (t) => {
  const url = await server.createDatabase();
  const store = await openOnMovedClock(url, () => NOON);
  t.after(() => store.close());
  const ada = new EndUser(1, 1);
  await store.write([ada.add(10)]);
  await setLatest(url, transactionId({ at: NOON, sequence: SEQUENCE_COUNT - 1, tail: '000000000000' }));
  assert.deepEqual(await store.write([ada.subtract(1), ada.subtract(2)]), [ACCEPTED, ACCEPTED]);
  const created = (await transactionsOf(store, ada)).map(({ createdAt }) => createdAt - NOON);
  assert.deepEqual(created, [1, 1, 0]);
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
});

describe('deadlocks', () => {
  const BATCHES = 2_000;
  const USERS = 200;
  const BATCH_USERS = 6;

  it(`${BATCHES} batches of random end users, over three stores at once, never deadlock`, async (ledger) => {
    const { stores, database } = ledger;
    const users = Array.from({ length: USERS }, (_, index) => new EndUser(1, index));
    // Half of them are new to the ledger, so that their rows are added at once as well.
    await stores[0].write(users.slice(0, USERS / 2).map((user) => user.add(1_000_000)));
    let left = BATCHES;
    const writer = async (store: Store) => {
      while (left-- > 0) {
        const some = Array.from({ length: BATCH_USERS }, () => users[Math.floor(Math.random() * USERS)] as EndUser);
        const outcomes = await store.write(some.flatMap((user) => [user.add(1), user.subtract(1)]));
        assert.deepEqual(tally(outcomes), { accepted: 2 * BATCH_USERS });
      }
    };
    await Promise.all(Array.from({ length: 9 }, (_, index) => writer(storeOf(stores, index))));
    assert.equal(await deadlocksIn(database), 0);
  });

  it('control: rows that are locked in any order do deadlock, and that is counted', async ({
    stores,
    url,
    database,
  }) => {
    const users = [new EndUser(1, 1), new EndUser(1, 2)] as const;
    await stores[0].write(users.map((user) => user.add(1)));
    const [one, other] = [await connected(url), await connected(url)];
    const lock = (client: pg.Client, user: EndUser) =>
      client.query('SELECT FROM scrip.end_users WHERE end_user = $1 FOR UPDATE', [user.key.endUser]);
    await Promise.all([one.query('BEGIN'), other.query('BEGIN')]);
    await lock(one, users[0]);
    await lock(other, users[1]);
    const results = await Promise.allSettled([lock(one, users[1]), lock(other, users[0])]);
    const failures = results.filter((result) => result.status === 'rejected');
    assert.deepEqual(
      failures.map(({ reason }) => reason.code),
      ['40P01'],
    );
    await Promise.all([one.end(), other.end()]);
    assert.equal(await deadlocksIn(database), 1);
  });
});

async function setLatest(url: string, id: string): Promise<void> {
  await server.query(`UPDATE scrip.cycles SET latest = '${id}'`, new URL(url).pathname.slice(1));
}

function storeOf(stores: readonly Store[], index: number): Store {
  return stores[index % stores.length] as Store;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function untilSomebodyWaits(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query('SELECT FROM pg_locks WHERE NOT granted');
    if (rows.length > 0) return;
    await sleep(5);
  }
}

/** Backends report what they counted when they are idle, at most once a second. */
async function deadlocksIn(database: string): Promise<number> {
  await sleep(1_200);
  const { rows } = await server.query(`SELECT deadlocks FROM pg_stat_database WHERE datname = '${database}'`);
  return Number(rows[0].deadlocks);
}
