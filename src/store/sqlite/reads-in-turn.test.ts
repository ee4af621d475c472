// How many reads are done in a turn of the event loop: all that are asked for, unless they are of thousands of cycles,
// which wait behind the others.

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Loaded } from '../loaded.ts';
import { CYCLES_A_TURN, MANY_CYCLES, ReadsInTurn } from './reads-in-turn.ts';
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

const others = (count: number) => Array.from({ length: count }, () => ({ account: 1, endUser: crypto.randomUUID() }));

/** Reads in a turn of the event loop, each with its name, and what the database was told. */
class Turns {
  readonly said: string[] = [];
  readonly byTurn: string[][] = [];
  readonly #reads: ReadsInTurn;
  readonly #asked: Promise<Loaded>[] = [];
  #inTurn: string[] = [];

  constructor() {
    const db = { isOpen: true, isTransaction: true, exec: (sql: string) => void this.said.push(sql) };
    this.#reads = new ReadsInTurn(db as unknown as DatabaseSync, new WritesUnderWay());
  }

  ask(user: EndUserKey, cycles: number, name = user.endUser): void {
    const loaded: Loaded = { now: 0, cycles: Array.from({ length: cycles }, () => CYCLE) };
    const read = () => {
      this.#inTurn.push(name);
      return loaded;
    };
    this.#asked.push(this.#reads.add(user, read));
  }

  async end(): Promise<number[]> {
    while (this.byTurn.flat().length < this.#asked.length) {
      await nextTurn();
      if (this.#inTurn.length > 0) this.byTurn.push(this.#inTurn);
      this.#inTurn = [];
    }
    await Promise.all(this.#asked);
    return this.byTurn.map(({ length }) => length);
  }
}

test('reads of few cycles that are asked for in a turn are done in one, in order, in one transaction', async () => {
  const turns = new Turns();
  const users = others(500);
  for (const user of users) turns.ask(user, 3);
  assert.deepEqual(await turns.end(), [500]);
  assert.deepEqual(
    turns.byTurn[0],
    users.map(({ endUser }) => endUser),
  );
  assert.deepEqual(turns.said, ['BEGIN', 'COMMIT']);
});

test('of thousands of cycles one or two reads are done in a turn, each turn with a snapshot of its own', async () => {
  const turns = new Turns();
  for (const user of others(5)) turns.ask(user, CYCLES_A_TURN);
  assert.deepEqual(await turns.end(), [1, 1, 1, 1, 1]);
  assert.deepEqual(turns.said, Array.from({ length: 5 }, () => ['BEGIN', 'COMMIT']).flat());
  const less = new Turns();
  for (let read = 0; read < 5; read++) less.ask(USER, CYCLES_A_TURN - 1);
  assert.deepEqual(await less.end(), [2, 2, 1]);
});

test('behind 20 reads of one with thousands of cycles, others wait for one or two of them', async () => {
  const turns = new Turns();
  for (let read = 0; read < 20; read++) turns.ask(USER, CYCLES_A_TURN, 'large');
  for (const user of others(50)) turns.ask(user, 3, 'small');
  await turns.end();
  const order = turns.byTurn.flat();
  const before = order.slice(0, order.lastIndexOf('small'));
  assert(before.filter((name) => name === 'large').length <= 2, `${before}`);
  assert(turns.byTurn.every((names) => names.filter((name) => name === 'large').length <= 1));
});

test('who has many cycles no more waits no more', async () => {
  const turns = new Turns();
  turns.ask(USER, MANY_CYCLES);
  await turns.end();
  turns.ask(USER, MANY_CYCLES - 1);
  await turns.end();
  const [other] = others(1);
  assert(other);
  turns.ask(USER, 1, 'first');
  turns.ask(other, 1, 'second');
  await turns.end();
  assert.deepEqual(turns.byTurn.at(-1), ['first', 'second']);
});
