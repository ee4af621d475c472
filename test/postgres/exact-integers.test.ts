// Credits in PostgreSQL are 64-bit integers, of which JavaScript holds those within 2^53−1 exactly. The largest survive,
// and one past them, which no CHECK of ours lets in, stops the ledger rather than being rounded.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { balanceOf, EndUser, historyOf } from '../store/temporary-ledger.ts';
import { OPTIONS } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** The first integer that a number does not tell from the one before it. */
const INEXACT = '9007199254740993';

const ada = new EndUser(1, 1);

async function withLedger(work: (store: Store, run: (sql: string) => Promise<unknown>) => Promise<void>) {
  const url = await server.createDatabase();
  const store = await openPostgresStore({ ...OPTIONS, url });
  try {
    await work(store, (sql) => server.query(sql, new URL(url).pathname.slice(1)));
  } finally {
    await store.close();
  }
}

test('amounts of 2^53−1 are stored, read, listed and spent to the credit', () =>
  withLedger(async (store, run) => {
    const bob = new EndUser(1, 2);
    await store.write([ada.add(AMOUNT_MAX), bob.startCycle(AMOUNT_MAX), bob.subtract(AMOUNT_MAX)]);
    assert.equal(await balanceOf(store, ada), AMOUNT_MAX);
    assert.deepEqual(await store.write([ada.subtract(AMOUNT_MAX - 1)]), [ACCEPTED]);
    assert.equal(await balanceOf(store, ada), 1);
    assert.deepEqual(await historyOf(store, bob), [`-${AMOUNT_MAX} subtract`, `+${AMOUNT_MAX} start-cycle`]);
    const stored = (await run('SELECT DISTINCT amount::text FROM scrip.cycles')) as { rows: unknown[] };
    assert.deepEqual(stored.rows, [{ amount: '9007199254740991' }]);
  }));

test('the database itself refuses more', () =>
  withLedger(async (store, run) => {
    await store.write([ada.add(5)]);
    for (const column of ['amount', 'remaining'])
      await assert.rejects(run(`UPDATE scrip.cycles SET ${column} = ${INEXACT}`), { code: '23514' });
    assert.equal(await balanceOf(store, ada), 5);
  }));

/** What comes across the number first. */
const FINDERS: readonly (readonly [who: string, look: (store: Store) => Promise<unknown>])[] = [
  ['a write', (store) => store.write([ada.subtract(1)])],
  ['a read of cycles', (store) => store.cycles(ada.key)],
  ['a read of transactions', (store) => store.transactions(ada.key, { from: null, limit: 10 })],
];

for (const [who, look] of FINDERS) {
  test(`a number past 2^53−1 that ${who} comes across stops the ledger, and nobody is told another`, () =>
    withLedger(async (store, run) => {
      await store.write([ada.add(5)]);
      for (const column of ['amount', 'remaining'])
        await run(`ALTER TABLE scrip.cycles DROP CONSTRAINT IF EXISTS cycles_${column}_check`);
      await run('ALTER TABLE scrip.cycles DROP CONSTRAINT IF EXISTS cycles_check');
      await run(`UPDATE scrip.cycles SET amount = ${INEXACT}, remaining = ${INEXACT}`);
      await run(`UPDATE scrip.postings SET amount = ${INEXACT}`);
      const stopped = (error: unknown) => error instanceof StoreFault && error.code === 'Internal';
      await assert.rejects(look(store), stopped);
      assert.match(store.trouble() ?? '', /2\^53/);
      await assert.rejects(store.write([new EndUser(1, 2).add(1)]), stopped, 'for everybody');
      await assert.rejects(store.cycles(ada.key), stopped);
      await assert.rejects(store.transactions(ada.key, { from: null, limit: 10 }), stopped);
    }));
}
