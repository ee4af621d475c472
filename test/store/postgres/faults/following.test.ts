// The store does not wait for the reply to a COMMIT: it sends the first statements of the next batch right after the
// COMMIT, on the same connection. The next batch sees the effects of the previous batch. If the previous batch fails,
// the next batch is retried and still takes effect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Command } from '../../../../src/ledger/command.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { ACCEPTED, historyOf, type Result, resultOf } from '../../temporary-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { beforeEachPosting, type Contended, withOutsider } from './contended-ledger.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

function withTrigger(body: string, work: (contended: Contended) => Promise<void>, prepared = true): Promise<void> {
  return withOutsider(server, { lanes: 1, prepared }, async (contended) => {
    await beforeEachPosting(contended.outsider, body);
    await work(contended);
  });
}

type Results = readonly (Result | null)[] | string;

/** Starts the second batch as soon as the outcomes of the first are decided, but before the first is committed. */
async function writeInTurn(store: LedgerStore, first: readonly Command[], second: readonly Command[]) {
  const ends: string[] = [];
  const ended = async (name: string, write: ReturnType<LedgerStore['write']>): Promise<Results> => {
    const results = await write.then(
      (outcomes) => outcomes.map(resultOf),
      (error) => (error instanceof StoreFault ? error.code : Promise.reject(error)),
    );
    ends.push(name);
    return results;
  };
  const following = Promise.withResolvers<Results>();
  let decisions = 0;
  const results = await ended(
    'first',
    store.write(first, () => {
      decisions += 1;
      if (decisions === 1)
        following.resolve(
          ended(
            'second',
            store.write(second, () => {}),
          ),
        );
    }),
  );
  return { results: [results, await following.promise], ends, decisions };
}

const SLOW = 'IF new.amount = -30 THEN PERFORM pg_sleep(0.3); END IF;';

describe('consecutive batches on one connection to PostgreSQL', { concurrency: true, timeout: 60_000 }, () => {
  for (const prepared of [true, false]) {
    test(`a batch sees the effects of the previous batch on the same connection${prepared ? '' : ', without prepared statements'}`, () =>
      withTrigger(
        SLOW,
        async ({ ledger, outsider, ada }) => {
          const connections = `SELECT count(*)::integer AS count FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE '%COMMIT%' AND pid <> pg_backend_pid()`;
          const { results, ends } = await writeInTurn(ledger.store, [ada.subtract(30)], [ada.subtract(71)]);
          assert.deepEqual(results, [[ACCEPTED], [{ refused: 'InsufficientFunds', requested: 71, available: 70 }]]);
          assert.deepEqual(ends, ['first', 'second']);
          assert.deepEqual(await historyOf(ledger, ada), ['-30 subtract', '+100 add']);
          assert((await outsider.query(connections)).rows[0].count <= 1, 'both batches were on one connection');
        },
        prepared,
      ));
  }

  test('if a batch on PostgreSQL is retried, both this batch and the next batch on the same connection take effect once', () =>
    withTrigger(
      `IF new.amount = -30 AND nextval('public.tries') = 1 THEN RAISE 'not now' USING ERRCODE = '40001'; END IF;`,
      async ({ ledger, ada, bob }) => {
        const { results, decisions } = await writeInTurn(
          ledger.store,
          [ada.subtract(30)],
          [ada.subtract(5), bob.subtract(20)],
        );
        assert.deepEqual(results, [[ACCEPTED], [ACCEPTED, ACCEPTED]]);
        assert.equal(decisions, 1, 'a retry does not start another batch');
        assert.deepEqual((await historyOf(ledger, ada)).toSorted(), ['+100 add', '-30 subtract', '-5 subtract']);
        assert.deepEqual(await historyOf(ledger, bob), ['-20 subtract', '+100 add']);
      },
    ));

  test('if the database rejects a batch, the next batch on the same connection is still written, and then the ledger stops writing', () =>
    withTrigger(
      `IF new.amount = -30 THEN RAISE 'no' USING ERRCODE = '23514'; END IF;`,
      async ({ ledger, ada, bob }) => {
        const { results } = await writeInTurn(ledger.store, [ada.subtract(30)], [bob.subtract(20)]);
        assert.deepEqual(results, ['Internal', [ACCEPTED]]);
        assert.deepEqual(await historyOf(ledger, ada), ['+100 add']);
        assert.deepEqual(await historyOf(ledger, bob), ['-20 subtract', '+100 add']);
        await assert.rejects(ledger.write([bob.subtract(1)]), { code: 'Internal' });
      },
    ));

  test('if a connection with two batches is terminated, each of the two batches takes effect once', () =>
    withTrigger(SLOW, async ({ ledger, outsider, ada, bob }) => {
      const busy = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`;
      const ending = (async () => {
        while ((await outsider.query(`SELECT 1 ${busy}`)).rows.length === 0);
        await outsider.query(`SELECT pg_terminate_backend(pid) ${busy}`);
      })();
      const { results } = await writeInTurn(ledger.store, [ada.subtract(30)], [ada.subtract(5), bob.subtract(20)]);
      await ending;
      assert.deepEqual(results, [[ACCEPTED], [ACCEPTED, ACCEPTED]]);
      assert.deepEqual((await historyOf(ledger, ada)).toSorted(), ['+100 add', '-30 subtract', '-5 subtract']);
      assert.deepEqual(await historyOf(ledger, bob), ['-20 subtract', '+100 add']);
    }));
});
