// On PostgreSQL, a read that shows a renewal first waits until earlier batches have been committed. Without this wait,
// a client could see the renewal in one read, and an earlier transaction only in a later read.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Command } from '../../../../src/ledger/command.ts';
import { balanceAt } from '../../../../src/ledger/history.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { dueCount } from '../../../../src/ledger/settle.ts';
import type { EndUserState } from '../../../../src/ledger/state.ts';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { balanceOf, EndUser, historyOf, NOON, problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { beforeEachPosting } from '../faults/contended-ledger.ts';
import { pluggedOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';

const ada = new EndUser(1, 1);

/** Each insert of a posting waits while `outsider` holds this advisory lock. */
const HOLD_UP = 'PERFORM pg_advisory_xact_lock_shared(4711);';
const LOOK_MS = 20;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Midnight {
  readonly writer: TestLedger;
  readonly reader: TestLedger;
  readonly outsider: pg.Client;
  readonly endTheDay: () => void;
}

async function beforeMidnight(work: (midnight: Midnight) => Promise<void>): Promise<void> {
  let now = NOON;
  const url = await server.createDatabase();
  const open = () => TestLedger.open(async () => pluggedOnMovedClock(url, () => now));
  const writer = await open();
  const reader = await open();
  const outsider = new pg.Client({ connectionString: url });
  await outsider.connect();
  const endTheDay = () => {
    now += DAY_MS;
  };
  try {
    await writer.write([ada.startCycle(100, 1)]);
    await work({ writer, reader, outsider, endTheDay });
    assert.deepEqual(problemsOf(await reader.audit()), []);
  } finally {
    await outsider.end();
    for (const process of [writer, reader]) {
      await process.close();
      await process.remove();
    }
  }
}

async function readDuring<Result>(
  { writer, reader, outsider, endTheDay }: Midnight,
  command: Command,
  read: (ledger: TestLedger) => Promise<Result>,
): Promise<Result> {
  await beforeEachPosting(outsider, HOLD_UP);
  await outsider.query('SELECT pg_advisory_lock(4711)');
  const writing = writer.write([command]);
  const waiting = async (sessions: number) => {
    const count = `SELECT count(*)::integer AS count FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    while ((await outsider.query(count)).rows[0].count < sessions) await sleep(LOOK_MS);
  };
  await waiting(1);
  endTheDay();
  const reading = read(reader);
  await Promise.race([reading, waiting(2)]);
  // `read` may send a second query that waits for the write: give this query time to start.
  await Promise.race([reading, sleep(LOOK_MS)]);
  await outsider.query('SELECT pg_advisory_unlock(4711)');
  await writing;
  return reading;
}

describe('a renewal that is shown while another process writes', { concurrency: true, timeout: 60_000 }, () => {
  test('on PostgreSQL, a list of transactions that shows a renewal waits for an earlier write that is not committed yet', () =>
    beforeMidnight(async (midnight) => {
      const list = (ledger: TestLedger) => ledger.transactions(ada.key, { limit: 10 });
      const { transactions, state, now } = await readDuring(midnight, ada.subtract(30), list);
      assert.equal(dueCount(state, now), 1, 'the list shows a renewal');
      assert.deepEqual(
        transactions.map(({ amount }) => amount),
        [-30, 100],
      );
      const { reader } = midnight;
      await reader.write([ada.settle()]);
      assert.deepEqual(await historyOf(reader, ada), ['+100 renew', '-30 subtract', '+100 start-cycle']);
    }));

  test('on PostgreSQL, a balance does not include a renewal of a cycle that another process is stopping', () =>
    beforeMidnight(async (midnight) => {
      assert.equal(await readDuring(midnight, ada.stopCycle(), (ledger) => balanceOf(ledger, ada)), 0);
    }));

  test('on PostgreSQL, the history does not show a renewal of a cycle that another process is stopping', () =>
    beforeMidnight(async (midnight) => {
      const read = ({ store }: TestLedger) => store.history(ada.key, { from: null, limit: 10 });
      const { state, now } = await readDuring(midnight, ada.stopCycle(), read);
      assert.equal(dueCount(state, now), 0);
    }));

  test('on PostgreSQL, a read of the balance at a past instant waits for an earlier write that is not committed yet', () =>
    beforeMidnight(async (midnight) => {
      const at = NOON + DAY_MS - 1;
      const read = ({ store }: TestLedger) => store.statesAt(ada.key, [NOON - 1, at, NOON + DAY_MS]);
      const { states } = await readDuring(midnight, ada.subtract(30), read);
      const balances = [NOON - 1, at, NOON + DAY_MS].map((each, index) =>
        balanceAt(states[index] as EndUserState, each),
      );
      assert.deepEqual(
        balances.map(({ balance }) => balance),
        [0, 70, 100],
      );
    }));

  test('on PostgreSQL, a hold that another process is capturing is not shown as lapsed', () =>
    beforeMidnight(async (midnight) => {
      const { writer } = midnight;
      const [held] = await writer.write([ada.hold(40, DAY_MS / 1_000)]);
      assert(held?.refused === null && held.hold);
      await writer.write([ada.stopCycle(), ada.add(5)]);
      assert.equal(await readDuring(midnight, ada.capture(held.hold.id), (ledger) => balanceOf(ledger, ada)), 5);
    }));

  test('on PostgreSQL, a read fails if it would have to wait too long for a write', () =>
    beforeMidnight(async ({ reader, outsider, endTheDay }) => {
      await outsider.query('BEGIN; SELECT * FROM scrip.end_users FOR UPDATE');
      assert.equal(await balanceOf(reader, ada), 100, 'a read does not wait if nothing is due');
      endTheDay();
      await assert.rejects(
        reader.load(ada.key),
        (error) => error instanceof StoreFault && error.code === 'StoreUnavailable',
      );
      await outsider.query('ROLLBACK');
      assert.equal(await balanceOf(reader, ada), 100);
    }));
});
