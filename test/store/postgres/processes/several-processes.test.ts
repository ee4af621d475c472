// Tests several processes that write to the same end users in one database: the results are the same as with a single
// process, and no deadlock occurs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Outcome } from '../../../../src/ledger/command.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { SEQUENCE_COUNT, transactionId } from '../../../../src/ledger/transaction-id.ts';
import { effort } from '../../../effort.ts';
import { ACCEPTED, balanceOf, EndUser, NOON, problemsOf, transactionsOf } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { type SharedLedger, tally, withSharedLedger } from './shared-ledger.ts';

const TEST_MS_MAX = 60_000;

let server: PostgresServer;
before(async () => {
  // By default, PostgreSQL would scan the small table of end users, so batches would lock rows in the same order even
  // if the store did not sort the rows. With these settings, PostgreSQL looks up rows by index in the order of the
  // batch, as in a large table.
  const asInLargeTable = { enable_hashjoin: 'off', enable_mergejoin: 'off', enable_seqscan: 'off' };
  // Scrip must set the isolation level of each transaction itself, because a server may have a different default.
  const isolation = { default_transaction_isolation: 'repeatable read' };
  server = await PostgresServer.start({ fsync: 'off', deadlock_timeout: '50ms', ...asInLargeTable, ...isolation });
});
after(() => server.remove());

function it(sentence: string, work: (ledger: SharedLedger) => Promise<void>): void {
  test(sentence, { timeout: TEST_MS_MAX }, () => withSharedLedger(server, work));
}

describe('several processes on one PostgreSQL database', () => {
  it('of 300 subtractions of 1 from a balance of 100 in three processes at once, exactly 100 are accepted', async ({
    processes,
  }) => {
    const hot = new EndUser(1, 1);
    await processes[0].write([hot.add(100)]);
    const outcomes: (Outcome | null)[] = [];
    const spend = async (process: TestLedger) => {
      for (let time = 0; time < 25; time++) outcomes.push(...(await process.write([hot.subtract(1)])));
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => spend(processOf(processes, index))));
    assert.deepEqual(tally(outcomes), { accepted: 100, InsufficientFunds: 200 });
    for (const process of processes) assert.equal(await balanceOf(process, hot), 0);
  });

  it('if several processes start a cycle for the same new end user at once, exactly one of them succeeds', async ({
    processes,
  }) => {
    const users = Array.from({ length: 5 }, (_, index) => new EndUser(1, index));
    const starts = Array.from({ length: 12 }, (_, index) =>
      processOf(processes, index).write(users.map((user) => user.startCycle(10))),
    );
    const answers = await Promise.all(starts);
    for (const [index, user] of users.entries()) {
      const outcomes = answers.map((outcomes) => outcomes[index] ?? null);
      assert.deepEqual(tally(outcomes), { accepted: 1, CycleAlreadyActive: 11 });
      const shown = outcomes.map((outcome) => (outcome && 'cycle' in outcome ? outcome.cycle?.id : null));
      assert.equal(new Set(shown).size, 1, 'all outcomes have the same cycle');
      assert.equal((await transactionsOf(processes[2], user)).length, 1);
    }
  });

  it("an end user's transaction IDs ascend in the order of the writes, even if several processes made the writes", async (ledger) => {
    const [ada, bob] = [new EndUser(1, 1), new EndUser(2, 1)];
    for (let round = 0; round < 30; round++)
      await processOf(ledger.processes, round).write([ada.add(round + 1), bob.add(1), ada.add(1_000 + round)]);
    const written = (await transactionsOf(ledger.processes[0], ada)).toReversed();
    assert.deepEqual(
      written.map(({ amount }) => amount),
      Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? index / 2 + 1 : 1_000 + (index - 1) / 2)),
    );
    const ids = written.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, 60);
  });

  it('if another process adds an end user while a batch waits for locks, the batch treats this end user as unknown', async ({
    processes,
    url,
  }) => {
    const [hot, late] = [new EndUser(1, 1), new EndUser(1, 2)];
    await processes[0].write([hot.add(1)]);
    const holder = await connected(url);
    await holder.query('BEGIN; SELECT FROM scrip.end_users FOR UPDATE');
    const waiting = processes[1].results([hot.add(1), late.subtract(100)]);
    await untilOneWaits(holder);
    await processes[2].write([late.add(100)]);
    await holder.query('COMMIT');
    await holder.end();
    const refused = { refused: 'InsufficientFunds', requested: 100, available: 0 };
    assert.deepEqual(await waiting, [ACCEPTED, refused]);
    assert.equal(await balanceOf(processes[1], late), 100);
  });
});

test('a renewal that several processes try to store at the same time is stored only once', {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const open = () => openOnMovedClock(t, url, () => wall);
  const processes = [await open(), await open(), await open()] as const;
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  await processes[0].write(users.map((user) => user.startCycle(10, 1)));
  wall += 3 * DAY_MS;
  const renewals = Array.from({ length: 6 }, async (_, index) => {
    const process = processOf(processes, index);
    const due = await process.due(users.length);
    return process.write(due.map((key) => ({ kind: 'settle', ...key })));
  });
  for (const outcomes of await Promise.all(renewals)) assert(outcomes.every((outcome) => outcome?.refused === null));
  for (const user of users) {
    const kinds = (await transactionsOf(processes[1], user)).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['renew', 'renew', 'renew', 'start-cycle']);
    assert.equal(await balanceOf(processes[2], user), 10);
  }
  for (const process of processes) assert.deepEqual(await process.due(1), []);
  assert.deepEqual(problemsOf(await processes[0].audit()), []);
});

test('a read never uses an instant before the latest write, even if the clock of the writing process was ahead', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openOnMovedClock(t, url, () => NOON);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10, 1)]);
  // Simulates a write by another process whose clock is ahead.
  await setLatest(url, transactionId({ at: NOON + DAY_MS, sequence: 1, tail: '000000000000' }));
  const refused = { refused: 'InsufficientFunds', requested: 1, available: 0 };
  assert.deepEqual(await ledger.write([ada.subtract(1)]), [refused]);
  assert.equal(await balanceOf(ledger, ada), 0);
});

test('when all transaction IDs of a millisecond are used, the next transactions get IDs of the next millisecond', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openOnMovedClock(t, url, () => NOON);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10)]);
  await setLatest(url, transactionId({ at: NOON, sequence: SEQUENCE_COUNT - 1, tail: '000000000000' }));
  assert.deepEqual(await ledger.results([ada.subtract(1), ada.subtract(2)]), [ACCEPTED, ACCEPTED]);
  const created = (await transactionsOf(ledger, ada)).map(({ createdAt }) => createdAt - NOON);
  assert.deepEqual(created, [1, 1, 0]);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

describe('deadlocks between processes', () => {
  const BATCHES = effort(500, 2_000);
  const USERS = 200;
  const BATCH_USERS = 6;

  it(`${BATCHES} batches of writes to random end users in three processes at once never deadlock`, async (ledger) => {
    const { processes, database } = ledger;
    const users = Array.from({ length: USERS }, (_, index) => new EndUser(1, index));
    // Only half of the end users exist already, so that the processes also insert rows at the same time.
    await processes[0].write(users.slice(0, USERS / 2).map((user) => user.add(1_000_000)));
    let left = BATCHES;
    const writer = async (process: TestLedger) => {
      while (left-- > 0) {
        const some = Array.from({ length: BATCH_USERS }, () => users[Math.floor(Math.random() * USERS)] as EndUser);
        const outcomes = await process.write(some.flatMap((user) => [user.add(1), user.subtract(1)]));
        assert.deepEqual(tally(outcomes), { accepted: 2 * BATCH_USERS });
      }
    };
    await Promise.all(Array.from({ length: 9 }, (_, index) => writer(processOf(processes, index))));
    assert.equal(await deadlocksIn(database), 0);
  });

  it('control: two clients that lock rows in opposite orders deadlock, and PostgreSQL counts the deadlock', async ({
    processes,
    url,
    database,
  }) => {
    const users = [new EndUser(1, 1), new EndUser(1, 2)] as const;
    await processes[0].write(users.map((user) => user.add(1)));
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
  await server.query(`UPDATE scrip.cycles SET ids_through = '${id}'`, new URL(url).pathname.slice(1));
}

function processOf(processes: readonly TestLedger[], index: number): TestLedger {
  return processes[index % processes.length] as TestLedger;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function untilOneWaits(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query('SELECT FROM pg_locks WHERE NOT granted');
    if (rows.length > 0) return;
    await sleep(5);
  }
}

/** A PostgreSQL process reports its statistics at most once a second. */
async function deadlocksIn(database: string): Promise<number> {
  await sleep(1_200);
  const { rows } = await server.query(`SELECT deadlocks FROM pg_stat_database WHERE datname = '${database}'`);
  return Number(rows[0].deadlocks);
}
