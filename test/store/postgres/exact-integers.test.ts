// Credits in PostgreSQL are 64-bit integers, but JavaScript represents only integers up to 2^53−1 exactly. The CHECK
// constraints reject larger numbers. If a larger number is stored anyway, the ledger stops instead of rounding it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { StoreFault } from '../../../src/store/store-fault.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf } from '../temporary-ledger.ts';
import { TestLedger } from '../test-ledger.ts';
import { pluggedDatabase } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** 2^53 + 1, the smallest positive integer that a JavaScript number cannot represent. */
const INEXACT = '9007199254740993';

const ada = new EndUser(1, 1);

async function withLedger(work: (ledger: TestLedger, run: (sql: string) => Promise<unknown>) => Promise<void>) {
  const url = await server.createDatabase();
  const ledger = await TestLedger.open(async () => pluggedDatabase(url));
  try {
    await work(ledger, (sql) => server.query(sql, new URL(url).pathname.slice(1)));
  } finally {
    await ledger.close();
  }
}

test('amounts of 2^53−1 are stored, read, listed and spent exactly in PostgreSQL', () =>
  withLedger(async (ledger, run) => {
    const bob = new EndUser(1, 2);
    await ledger.write([ada.add(AMOUNT_MAX), bob.startCycle(AMOUNT_MAX), bob.subtract(AMOUNT_MAX)]);
    assert.equal(await balanceOf(ledger, ada), AMOUNT_MAX);
    assert.deepEqual(await ledger.results([ada.subtract(AMOUNT_MAX - 1)]), [ACCEPTED]);
    assert.equal(await balanceOf(ledger, ada), 1);
    assert.deepEqual(await historyOf(ledger, bob), [`-${AMOUNT_MAX} subtract`, `+${AMOUNT_MAX} start-cycle`]);
    const stored = (await run('SELECT DISTINCT amount::text FROM scrip.cycles')) as { rows: unknown[] };
    assert.deepEqual(stored.rows, [{ amount: '9007199254740991' }]);
  }));

test('the constraints in PostgreSQL reject amounts above 2^53−1', () =>
  withLedger(async (ledger, run) => {
    await ledger.write([ada.add(5)]);
    for (const column of ['amount', 'remaining'])
      await assert.rejects(run(`UPDATE scrip.cycles SET ${column} = ${INEXACT}`), { code: '23514' });
    assert.equal(await balanceOf(ledger, ada), 5);
  }));

const FINDERS: readonly (readonly [finder: string, look: (ledger: TestLedger) => Promise<unknown>])[] = [
  ['a write', (ledger) => ledger.write([ada.subtract(1)])],
  ['a read of a balance', (ledger) => ledger.load(ada.key)],
  ['a read of transactions', (ledger) => ledger.transactions(ada.key)],
  ['a read of the history', ({ store }) => store.history(ada.key, { from: null, limit: 10 })],
];

for (const [finder, look] of FINDERS) {
  test(`if ${finder} finds a number above 2^53−1 in PostgreSQL, the ledger stops instead of rounding the number`, () =>
    withLedger(async (ledger, run) => {
      await ledger.write([ada.add(5)]);
      for (const column of ['amount', 'remaining'])
        await run(`ALTER TABLE scrip.cycles DROP CONSTRAINT IF EXISTS cycles_${column}_check`);
      await run('ALTER TABLE scrip.cycles DROP CONSTRAINT IF EXISTS cycles_check');
      await run(`UPDATE scrip.cycles SET amount = ${INEXACT}, remaining = ${INEXACT}`);
      await run(`UPDATE scrip.postings SET amount = ${INEXACT}`);
      const stopped = (error: unknown) => error instanceof StoreFault && error.code === 'Internal';
      await assert.rejects(look(ledger), stopped);
      assert.match(ledger.trouble() ?? '', /2\^53/);
      await assert.rejects(ledger.write([new EndUser(1, 2).add(1)]), stopped, 'writes for other end users fail too');
      await assert.rejects(ledger.load(ada.key), stopped);
      await assert.rejects(ledger.transactions(ada.key), stopped);
    }));
}
