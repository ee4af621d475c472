// On PostgreSQL a batch of one process may have its instant already while another process reads: a renewal that is shown
// there stands only if the reader waits for the batch.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Command } from '../../src/ledger/command.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { renewalsDueCount } from '../../src/ledger/settle.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { auditOf, balanceOf, EndUser, historyOf, NOON } from '../store/temporary-ledger.ts';
import { beforeEachPosting } from './contended-ledger.ts';
import { openOnMovedClock } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

const ada = new EndUser(1, 1);

/** Postings that are entered while the outsider has this lock wait for it. */
const HOLD_UP = 'PERFORM pg_advisory_xact_lock_shared(4711);';
const LOOK_MS = 20;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Midnight {
  /** Two processes on one database, in which Ada has a cycle that ends with the day. */
  readonly writer: Store;
  readonly reader: Store;
  readonly outsider: pg.Client;
  readonly endTheDay: () => void;
}

async function beforeMidnight(work: (midnight: Midnight) => Promise<void>): Promise<void> {
  let now = NOON;
  const url = await server.createDatabase();
  const writer = await openOnMovedClock(url, () => now);
  const reader = await openOnMovedClock(url, () => now);
  const outsider = new pg.Client({ connectionString: url });
  await outsider.connect();
  const endTheDay = () => {
    now += DAY_MS;
  };
  try {
    await writer.write([ada.startCycle(100, 1)]);
    await work({ writer, reader, outsider, endTheDay });
    assert.deepEqual(await auditOf(reader), { findings: [], store: [] });
  } finally {
    await outsider.end();
    await writer.close();
    await reader.close();
  }
}

/** @returns what `read` finds, asked in the middle of the write, once the day is over */
async function readDuring<Result>(
  { writer, reader, outsider, endTheDay }: Midnight,
  command: Command,
  read: (store: Store) => Promise<Result>,
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
  // Both of them, where they are two.
  await Promise.race([reading, sleep(LOOK_MS)]);
  await outsider.query('SELECT pg_advisory_unlock(4711)');
  await writing;
  return reading;
}

describe('renewals that another process comes before', { concurrency: true, timeout: 60_000 }, () => {
  test('a list waits for a write that comes before the renewal that it shows', () =>
    beforeMidnight(async (midnight) => {
      const list = (store: Store) => store.transactions(ada.key, { from: null, limit: 10 });
      const { transactions, cycles, now } = await readDuring(midnight, ada.subtract(30), list);
      assert.equal(renewalsDueCount(cycles, now), 1, 'it shows a renewal');
      assert.deepEqual(
        transactions.map(({ amount }) => amount),
        [-30, 100],
      );
      const { reader } = midnight;
      await reader.write([ada.renew()]);
      assert.deepEqual(await historyOf(reader, ada), ['+100 renew', '-30 subtract', '+100 start-cycle']);
    }));

  test('a balance does not show the credits of a cycle that is being stopped', () =>
    beforeMidnight(async (midnight) => {
      assert.equal(await readDuring(midnight, ada.stopCycle(), (store) => balanceOf(store, ada)), 0);
    }));

  test('nor do the console and its chart', () =>
    beforeMidnight(async (midnight) => {
      const both = ({ accountReads }: Store) =>
        Promise.all([
          accountReads.history(ada.key, { from: null, limit: 10, since: null }),
          accountReads.cyclesSince(ada.key, 0),
        ]);
      for (const { cycles, now } of await readDuring(midnight, ada.stopCycle(), both))
        assert.equal(renewalsDueCount(cycles, now), 0);
    }));

  test('when it takes too long, whoever reads is told so', () =>
    beforeMidnight(async ({ reader, outsider, endTheDay }) => {
      await outsider.query('BEGIN; SELECT * FROM scrip.end_users FOR UPDATE');
      assert.equal(await balanceOf(reader, ada), 100, 'as long as nothing is due, nobody waits');
      endTheDay();
      await assert.rejects(
        reader.cycles(ada.key),
        (error) => error instanceof StoreFault && error.code === 'StoreUnavailable',
      );
      await outsider.query('ROLLBACK');
      assert.equal(await balanceOf(reader, ada), 100);
    }));
});
