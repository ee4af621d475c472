// Tests errors that PostgreSQL reports: the store retries a batch after a temporary error, and a batch that fails with
// any other error has no effect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { bucketOf } from '../../../../src/store/postgres/rows/key.ts';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { ACCEPTED, EndUser, historyOf, noted } from '../../temporary-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { beforeEachPosting, withOutsider } from './contended-ledger.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

const TWO_LANES = { lanes: 2, prepared: true };

function lock({ key }: EndUser): string {
  return `SELECT 1 FROM scrip.end_users WHERE end_user = '${key.endUser}' FOR UPDATE`;
}

async function faultOf(write: Promise<unknown>): Promise<{ fault: unknown; tookMs: number }> {
  const started = performance.now();
  const error = await write.then(
    () => null,
    (error) => error,
  );
  return { fault: error instanceof StoreFault ? error.code : error, tookMs: performance.now() - started };
}

async function untilWaiting(outsider: pg.Client): Promise<void> {
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while ((await outsider.query(waiting)).rows.length === 0) await sleep(10);
}

describe('PostgreSQL errors', { concurrency: true, timeout: 60_000 }, () => {
  test('a batch is retried if PostgreSQL aborts it because of a deadlock with another client', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada, bob }) => {
      // The store locks the end users in the order of this query. The other client locks them in the opposite order.
      const { rows } = await outsider.query('SELECT end_user FROM scrip.end_users ORDER BY bucket, account, end_user');
      const [first, second] = rows[0].end_user === ada.key.endUser ? [ada, bob] : [bob, ada];
      // PostgreSQL rolls back whichever transaction is the first to check for a deadlock. The other client waits a
      // minute before it checks, so PostgreSQL rolls back the batch.
      await outsider.query(`SET deadlock_timeout = '1min'; BEGIN; ${lock(second)}`);
      const write = ledger.results([ada.subtract(30), bob.subtract(20)]);
      await untilWaiting(outsider);
      await outsider.query(lock(first));
      await outsider.query('COMMIT');
      assert.deepEqual(await write, [ACCEPTED, ACCEPTED]);
      assert.deepEqual(await historyOf(ledger, ada), ['-30 subtract', '+100 add']);
      assert.deepEqual(await historyOf(ledger, bob), ['-20 subtract', '+100 add']);
      await sleep(1_000);
      const deadlocks = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()';
      assert.equal((await outsider.query(deadlocks)).rows[0].deadlocks, '1');
    }));

  for (const code of ['40001', '40P01']) {
    test(`a batch that fails with ${code} on PostgreSQL is tried up to ten times in total`, () =>
      withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada }) => {
        await beforeEachPosting(
          outsider,
          `IF nextval('public.tries') % 13 <> 3 THEN RAISE 'not now' USING ERRCODE = '${code}'; END IF;`,
        );
        assert.deepEqual(await ledger.results([ada.subtract(30)]), [ACCEPTED], 'the third try succeeds');
        const { fault } = await faultOf(ledger.write([ada.subtract(30)]));
        assert.equal(fault, 'StoreUnavailable');
        assert.equal((await outsider.query('SELECT last_value FROM public.tries')).rows[0].last_value, '13');
        assert.deepEqual(await historyOf(ledger, ada), ['-30 subtract', '+100 add']);
      }));
  }

  test('a row that PostgreSQL rejects is an invariant violation, and the ledger stops writing', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada, bob }) => {
      await beforeEachPosting(outsider, `IF new.amount = -30 THEN RAISE 'no' USING ERRCODE = '23514'; END IF;`);
      assert.equal((await faultOf(ledger.write([ada.subtract(30)]))).fault, 'Internal');
      assert.equal((await faultOf(ledger.write([bob.subtract(1)]))).fault, 'Internal');
      assert.deepEqual(await historyOf(ledger, ada), ['+100 add']);
    }));

  test('if a bug makes a batch on PostgreSQL fail, the batch is not retried, and the ledger stops writing', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, ada, bob }) => {
      let tries = 0;
      const bug = () => {
        tries += 1;
        throw new TypeError('x is not a function');
      };
      const faulty = Object.defineProperty({ ...ada.subtract(30) }, 'amount', { get: bug, enumerable: true });
      assert.equal((await faultOf(ledger.write([bob.subtract(1), faulty]))).fault, 'Internal');
      assert.equal(tries, 1);
      assert.match(ledger.trouble() ?? '', /x is not a function/);
      assert.equal((await faultOf(ledger.write([bob.subtract(1)]))).fault, 'Internal');
      assert.deepEqual(await historyOf(ledger, bob), ['+100 add'], 'no part of the batch is stored');
    }));

  test('while another client locks an end user in PostgreSQL, writes for that end user fail with StoreUnavailable, and other writes succeed', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada, bob }) => {
      await outsider.query(`BEGIN; ${lock(ada)}`);
      const [{ fault, tookMs }, other] = await Promise.all([
        faultOf(ledger.write([ada.subtract(30)])),
        ledger.results([bob.subtract(20)]),
      ]);
      assert.equal(fault, 'StoreUnavailable');
      assert(tookMs > 2_900 && tookMs < 20_000, `it took ${tookMs} ms`);
      assert.deepEqual(other, [ACCEPTED]);
      await outsider.query('COMMIT');
      assert.deepEqual(await historyOf(ledger, ada), ['+100 add']);
      assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
    }));

  test('if another client has inserted an end user in PostgreSQL but has not committed, writes for that end user fail with StoreUnavailable', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider }) => {
      const carol = new EndUser(1, 3);
      const row = `(${bucketOf(carol.key)}, 1, '${carol.key.endUser}')`;
      await outsider.query(`BEGIN; INSERT INTO scrip.end_users (bucket, account, end_user) VALUES ${row}`);
      const { fault, tookMs } = await faultOf(ledger.write([carol.add(5)]));
      assert.equal(fault, 'StoreUnavailable');
      assert(tookMs < 20_000, `it took ${tookMs} ms`);
      await outsider.query('ROLLBACK');
      assert.deepEqual(await ledger.results([carol.add(5)]), [ACCEPTED]);
    }));

  test('PostgreSQL cancels a statement that takes too long, and the write has no effect', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada }) => {
      await beforeEachPosting(outsider, 'IF new.amount = -30 THEN PERFORM pg_sleep(30); END IF;');
      const { fault, tookMs } = await faultOf(ledger.write([ada.subtract(30)]));
      assert.equal(fault, 'StoreUnavailable');
      assert(tookMs > 3_900 && tookMs < 20_000, `it took ${tookMs} ms`);
      assert.deepEqual(await historyOf(ledger, ada), ['+100 add']);
      assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
    }));

  test('if the statements of a batch together take longer than Scrip waits for PostgreSQL, the write still gets the right outcome', () =>
    withOutsider(server, TWO_LANES, async ({ ledger, outsider, ada }) => {
      await beforeEachPosting(outsider, 'IF new.amount = -30 THEN PERFORM pg_sleep(3); END IF;');
      await outsider.query(`
        CREATE FUNCTION public.doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3); RETURN new; END $$;
        CREATE TRIGGER doze BEFORE UPDATE ON scrip.cycles FOR EACH ROW EXECUTE FUNCTION public.doze()`);
      // After Scrip disconnects, PostgreSQL may either execute the COMMIT or roll back.
      const outcome = await ledger.write([noted(ada.subtract(30), 'long')]).then(
        () => 'accepted',
        ({ code }: StoreFault) => code,
      );
      const happened = outcome === 'accepted' ? ['-30 subtract'] : [];
      assert(outcome === 'accepted' || outcome === 'StoreUnavailable', outcome);
      assert.deepEqual(await historyOf(ledger, ada), [...happened, '+100 add']);
    }));
});
