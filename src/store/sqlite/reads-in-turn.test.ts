// How many reads are done in a turn of the event loop: all that are asked for, unless they are of thousands of cycles.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Loaded } from '../loaded.ts';
import { CYCLES_A_TURN, ReadsInTurn } from './reads-in-turn.ts';
import { WritesUnderWay } from './writes-under-way.ts';

const USER = { account: 1, endUser: '0a5d6e7c-8f90-4123-8456-7890abcdef01' };
const CYCLE: Cycle = {
  id: '00000000-0000-4000-8000-000000000000',
  period: 0,
  type: 'one-time',
  status: 'active',
  amount: 1,
  remaining: 1,
  start: 0,
  end: 1_000,
  validityDays: 1,
};

/** @returns how many of `count` reads of so many cycles were done in each turn, and transactions were begun and ended */
async function turnsOf(count: number, cyclesEach: number): Promise<{ turns: number[]; begun: number; ended: number }> {
  const said: string[] = [];
  const db = { isOpen: true, isTransaction: true, exec: (sql: string) => void said.push(sql) };
  const reads = new ReadsInTurn(db as unknown as DatabaseSync, new WritesUnderWay());
  const loaded: Loaded = { now: 0, cycles: Array.from({ length: cyclesEach }, () => CYCLE) };
  const order: number[] = [];
  const turns: number[] = [];
  let inTurn = 0;
  const all = Array.from({ length: count }, (_, index) =>
    reads.add(USER, () => {
      inTurn += 1;
      order.push(index);
      return loaded;
    }),
  );
  while (order.length < count) {
    await nextTurn();
    turns.push(inTurn);
    inTurn = 0;
  }
  await Promise.all(all);
  assert.deepEqual(order, [...order.keys()], 'in the order in which they were asked for');
  const times = (statement: string) => said.filter((sql) => sql === statement).length;
  return { turns: turns.filter((read) => read > 0), begun: times('BEGIN'), ended: times('COMMIT') };
}

test('reads of few cycles that are asked for in a turn are done in one, in one transaction', async () => {
  assert.deepEqual(await turnsOf(500, 3), { turns: [500], begun: 1, ended: 1 });
});

test('of end users with thousands of cycles one or two are read in a turn, each turn with a snapshot of its own', async () => {
  assert.deepEqual(await turnsOf(5, CYCLES_A_TURN), { turns: [1, 1, 1, 1, 1], begun: 5, ended: 5 });
  assert.deepEqual((await turnsOf(5, CYCLES_A_TURN - 1)).turns, [2, 2, 1]);
});
