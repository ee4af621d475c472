// The turns of renewals and batches in the writer's thread, with a writer that counts and turns that the test takes: nobody
// who writes waits for more than a bounded number of renewals, and no COMMIT is for a few of them alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StoreFault } from '../store.ts';
import { RENEWAL_SLICE, type RenewalSlice } from './due-renewals.ts';
import { PERIODS_BESIDE_BATCH, RENEWED_MAX, RenewalTurns, type Renewed } from './renewal-turns.ts';

/** What a batch may have before it in all: what makes a COMMIT worth it, and the slice that came to more. */
const PERIODS_BEFORE_BATCH_MAX = PERIODS_BESIDE_BATCH + RENEWAL_SLICE.periodsMax;

class Ledger {
  due: number;
  /** Of each end user that is due. */
  periodsEach = 1;
  fault: StoreFault | null = null;
  /** Periods that each COMMIT has stored, and the batches that it was for. */
  readonly commits: { periods: number; batches: string[] }[] = [];
  readonly told: (Renewed | StoreFault)[] = [];
  readonly turns: RenewalTurns<string>;
  /** Periods, committed or not. */
  entered = 0;
  readonly #later: (() => void)[] = [];
  #periods = 0;
  #missed = 0;
  #endUsers = 0;
  #renewed = 0;

  constructor(due: number) {
    this.due = due;
    this.turns = new RenewalTurns<string>(this, {
      write: (batches) => this.#commit([...batches]),
      tell: (renewed) => void this.told.push(renewed),
      nextTurn: (work) => void this.#later.push(work),
    });
  }

  renew(): RenewalSlice {
    if (this.fault) throw this.fault;
    let [endUsers, periods] = [0, 0];
    while (this.due > 0 && endUsers < RENEWAL_SLICE.usersMax && periods < RENEWAL_SLICE.periodsMax) {
      periods += 1;
      this.#missed += 1;
      if (this.#missed < this.periodsEach) continue;
      this.#missed = 0;
      this.due -= 1;
      endUsers += 1;
    }
    this.entered += periods;
    this.#periods += periods;
    this.#endUsers += endUsers;
    return { endUsers, periods };
  }

  saveRenewals() {
    if (this.#periods > 0) this.#commit([]);
    return [];
  }

  takeRenewed(): number {
    const renewed = this.#renewed;
    this.#renewed = 0;
    return renewed;
  }

  /** What has come in is done before, as the event loop does it. */
  takeTurn(): boolean {
    const work = this.#later.shift();
    work?.();
    return work !== undefined;
  }

  #commit(batches: string[]): void {
    this.commits.push({ periods: this.#periods, batches });
    this.#renewed += this.#endUsers;
    this.#periods = 0;
    this.#endUsers = 0;
  }
}

function turnsUntil(ledger: Ledger, holds: () => boolean): number {
  for (let turns = 0; turns < 10_000; turns++) {
    if (holds()) return turns;
    assert(ledger.takeTurn(), 'there is more to do');
  }
  throw new Error('it never came to it');
}

test('where nothing is to be renewed a batch is written at once', () => {
  const ledger = new Ledger(0);
  ledger.turns.write('a');
  assert.deepEqual(ledger.commits, [{ periods: 0, batches: ['a'] }]);
  assert.equal(ledger.takeTurn(), false, 'and nothing is begun');
});

test('where nobody writes, what is asked for is committed as one', () => {
  const ledger = new Ledger(2 * RENEWED_MAX);
  ledger.turns.ask();
  turnsUntil(ledger, () => ledger.told.length === 1);
  assert.deepEqual(ledger.told, [{ endUsers: RENEWED_MAX, isMore: true, posted: [] }]);
  assert.deepEqual(ledger.commits, [{ periods: RENEWED_MAX, batches: [] }]);
  assert.equal(ledger.takeTurn(), false, 'no more than was asked for');
});

test('the last of them say that there are no more', () => {
  const ledger = new Ledger(20);
  ledger.turns.ask();
  ledger.turns.ask();
  turnsUntil(ledger, () => ledger.told.length === 2);
  assert.deepEqual(ledger.told, [
    { endUsers: 20, isMore: false, posted: [] },
    { endUsers: 0, isMore: false, posted: [] },
  ]);
  assert.deepEqual(ledger.commits, [{ periods: 20, batches: [] }]);
});

for (const periodsEach of [1, 3, 1_000]) {
  test(`whenever a batch comes in, it waits for a bounded number of periods, ${periodsEach} of each end user`, () => {
    for (let before = 0; before < 3 * PERIODS_BESIDE_BATCH; before++) {
      const ledger = new Ledger(100_000);
      ledger.periodsEach = periodsEach;
      ledger.turns.ask();
      ledger.turns.ask();
      for (let turn = 0; turn < before; turn++) ledger.takeTurn();
      const { entered } = ledger;
      ledger.turns.write('a');
      turnsUntil(ledger, () => ledger.commits.some(({ batches }) => batches.includes('a')));
      const waited = ledger.entered - entered;
      assert(waited <= PERIODS_BEFORE_BATCH_MAX, `${waited} behind ${before} turns`);
    }
  });
}

test('a batch goes at once when there are renewals enough for its COMMIT', () => {
  const ledger = new Ledger(1_000);
  ledger.turns.ask();
  for (let turn = 0; turn < PERIODS_BESIDE_BATCH / RENEWAL_SLICE.usersMax; turn++) ledger.takeTurn();
  ledger.turns.write('a');
  assert.deepEqual(ledger.commits, [{ periods: PERIODS_BESIDE_BATCH, batches: ['a'] }]);
});

test('batches that wait are written together, in their order, and each COMMIT has renewals enough', () => {
  const ledger = new Ledger(10_000);
  ledger.turns.ask();
  ledger.turns.ask();
  const names: string[] = [];
  for (let turn = 0; turn < 28; turn++) {
    names.push(`batch ${turn}`);
    ledger.turns.write(`batch ${turn}`);
    ledger.takeTurn();
  }
  const written = ledger.commits.flatMap(({ batches }) => batches);
  assert.deepEqual(written, names.slice(0, written.length));
  assert(written.length > 20);
  for (const { periods } of ledger.commits) assert(periods >= PERIODS_BESIDE_BATCH);
});

test('when nothing is left to renew, those that wait for it are written', () => {
  const ledger = new Ledger(20);
  ledger.turns.ask();
  ledger.takeTurn();
  ledger.turns.write('a');
  turnsUntil(ledger, () => ledger.told.length === 1);
  assert.deepEqual(ledger.commits, [{ periods: 20, batches: ['a'] }]);
  assert.deepEqual(
    ledger.told,
    [{ endUsers: 20, isMore: false, posted: [] }],
    'and whoever asked is told all the same',
  );
});

test('renewals that fail are told of, and hold up nobody', () => {
  const ledger = new Ledger(100);
  ledger.fault = new StoreFault('StoreUnavailable', 'for the test');
  ledger.turns.ask();
  ledger.turns.write('a');
  ledger.takeTurn();
  assert.deepEqual(ledger.commits, [{ periods: 0, batches: ['a'] }]);
  assert.deepEqual(ledger.told, [ledger.fault]);
  ledger.fault = null;
  ledger.turns.ask();
  turnsUntil(ledger, () => ledger.told.length === 2);
  assert.deepEqual(ledger.told[1], { endUsers: 100, isMore: false, posted: [] });
});

test('stopped, it writes what waits and begins nothing more', () => {
  const ledger = new Ledger(1_000);
  ledger.turns.ask();
  ledger.takeTurn();
  ledger.turns.write('a');
  ledger.turns.stop();
  assert.deepEqual(ledger.commits, [{ periods: RENEWAL_SLICE.usersMax, batches: ['a'] }]);
  while (ledger.takeTurn());
  assert.equal(ledger.commits.length, 1);
  assert.deepEqual(ledger.told, []);
});
