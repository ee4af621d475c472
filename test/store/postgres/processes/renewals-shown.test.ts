// On PostgreSQL, a batch of one process may already have its instant while another process reads. A reader must wait
// for such a batch before it shows a renewal, or the batch would be stored before a renewal that was already shown.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Command } from '../../../../src/ledger/command.ts';
import { balanceSteps } from '../../../../src/ledger/history.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { dueCount } from '../../../../src/ledger/settle.ts';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { balanceOf, EndUser, historyOf, NOON, problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { beforeEachPosting } from '../faults/contended-ledger.ts';
import { pluggedOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';

const ada = new EndUser(1, 1);

/** Makes postings wait while the outsider has this lock. */
const HOLD_UP = 'PERFORM pg_advisory_xact_lock_shared(4711);';
const LOOK_MS = 20;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Midnight {
  /** Two processes on one database, in which Ada has a cycle that ends with the day. */
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

/** @returns the result of `read`, which is called in the middle of the write, after the end of the day */
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
  // If there are two reads, waits for both.
  await Promise.race([reading, sleep(LOOK_MS)]);
  await outsider.query('SELECT pg_advisory_unlock(4711)');
  await writing;
  return reading;
}

describe('A renewal that is shown while another process writes', { concurrency: true, timeout: 60_000 }, () => {
  test('On PostgreSQL, listing transactions waits for a running write that precedes a renewal in the list', () =>
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

  test('A balance on PostgreSQL does not show the credits of a cycle that is being stopped', () =>
    beforeMidnight(async (midnight) => {
      assert.equal(await readDuring(midnight, ada.stopCycle(), (ledger) => balanceOf(ledger, ada)), 0);
    }));

  test('The console and its charts on PostgreSQL do not show a renewal of a cycle that is being stopped', () =>
    beforeMidnight(async (midnight) => {
      const both = ({ console }: TestLedger) =>
        Promise.all([console.history(ada.key, { from: null, limit: 10 }), console.chartHistory(ada.key, 0)]);
      const [history, chart] = await readDuring(midnight, ada.stopCycle(), both);
      assert.equal(dueCount(history.state, history.now), 0);
      assert(chart !== null);
      assert.equal(balanceSteps(chart, { from: 0, to: chart.now }).at(-1)?.balance, 0);
    }));

  test('A read on PostgreSQL that has to wait too long for a write fails', () =>
    beforeMidnight(async ({ reader, outsider, endTheDay }) => {
      await outsider.query('BEGIN; SELECT * FROM scrip.end_users FOR UPDATE');
      assert.equal(await balanceOf(reader, ada), 100, 'a read does not wait as long as nothing is due');
      endTheDay();
      await assert.rejects(
        reader.load(ada.key),
        (error) => error instanceof StoreFault && error.code === 'StoreUnavailable',
      );
      await outsider.query('ROLLBACK');
      assert.equal(await balanceOf(reader, ada), 100);
    }));
});
