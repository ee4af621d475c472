// Cycles of end users who wait to be posted, as numbers in a few long arrays: 80 bytes each, where an object has 300, and
// nothing for the garbage collector to look through. The cycles of one end user are a list, each with the next one's slot.

import assert from 'node:assert/strict';
import type { Cycle, CycleStatus, CycleType } from '../../ledger/cycle.ts';
import { grown } from './user-table.ts';
import { uuidOfWords, WORDS, writeWords } from './uuid.ts';

/** How a cycle differs from what is stored. */
export const SAME = 0;
export const SPENT = 1;
export const NEW = 2;
export type Mark = typeof SAME | typeof SPENT | typeof NEW;

export const NO_CYCLE = -1;

const TYPES: readonly CycleType[] = ['one-time', 'recurring'];
const STATUSES: readonly CycleStatus[] = ['active', 'canceled', 'renewed'];
const NUMBERS = 6;
const REMAINING = 1;
const STATES = 3;
const SLOTS_FIRST = 1_024;

export class CycleSlots {
  /** Amount, remaining, start, end, period and validity of each. */
  #numbers = new Float64Array(SLOTS_FIRST * NUMBERS);
  #ids = new Uint32Array(SLOTS_FIRST * WORDS);
  /** Type, status and mark in one. */
  #states = new Uint8Array(SLOTS_FIRST);
  /** Of a free one, the next free one. */
  #next = new Int32Array(SLOTS_FIRST);
  #free = NO_CYCLE;
  #used = 0;

  next(slot: number): number {
    return this.#next[slot] as number;
  }

  /** @returns the slot of the first one */
  put(cycles: readonly Cycle[], marks: readonly Mark[]): number {
    let first = NO_CYCLE;
    for (let place = cycles.length - 1; place >= 0; place--) {
      const slot = this.#take();
      this.#write(slot, cycles[place] as Cycle, marks[place] as Mark);
      this.#next[slot] = first;
      first = slot;
    }
    return first;
  }

  cycle(slot: number): Cycle {
    const at = slot * NUMBERS;
    const state = this.#states[slot] as number;
    return {
      id: uuidOfWords(this.#ids, slot * WORDS),
      period: this.#numbers[at + 4] as number,
      type: TYPES[Math.floor(state / STATES) % TYPES.length] as CycleType,
      status: STATUSES[Math.floor(state / STATES / TYPES.length)] as CycleStatus,
      amount: this.#numbers[at] as number,
      remaining: this.#numbers[at + REMAINING] as number,
      start: this.#numbers[at + 2] as number,
      end: this.#numbers[at + 3] as number,
      validityDays: this.#numbers[at + 5] as number,
    };
  }

  mark(slot: number): Mark {
    return ((this.#states[slot] as number) % STATES) as Mark;
  }

  /** So much remains in it now; what is new stays new. */
  spend(slot: number, remaining: number): void {
    this.#numbers[slot * NUMBERS + REMAINING] = remaining;
    if (this.mark(slot) === SAME) this.#states[slot] = (this.#states[slot] as number) + SPENT;
  }

  /** Puts a list behind the last one of another. */
  join(last: number, first: number): void {
    this.#next[last] = first;
  }

  /** From now on it is the same as what is stored. */
  unmark(slot: number): void {
    this.#states[slot] = (this.#states[slot] as number) - this.mark(slot) + SAME;
  }

  /**
   * Gives back a list.
   *
   * @returns how many it had
   */
  release(first: number): number {
    let count = 0;
    for (let slot = first; slot !== NO_CYCLE; count++) {
      const next = this.next(slot);
      this.#next[slot] = this.#free;
      this.#free = slot;
      slot = next;
    }
    return count;
  }

  #take(): number {
    const slot = this.#free;
    if (slot !== NO_CYCLE) {
      this.#free = this.next(slot);
      return slot;
    }
    if (this.#used === this.#next.length) this.#grow();
    return this.#used++;
  }

  #write(slot: number, cycle: Cycle, mark: Mark): void {
    const type = TYPES.indexOf(cycle.type);
    const status = STATUSES.indexOf(cycle.status);
    assert(type >= 0 && status >= 0, 'a cycle is of a known type and status');
    this.#states[slot] = (status * TYPES.length + type) * STATES + mark;
    writeWords(this.#ids, slot * WORDS, cycle.id);
    const at = slot * NUMBERS;
    this.#numbers[at] = cycle.amount;
    this.#numbers[at + REMAINING] = cycle.remaining;
    this.#numbers[at + 2] = cycle.start;
    this.#numbers[at + 3] = cycle.end;
    this.#numbers[at + 4] = cycle.period;
    this.#numbers[at + 5] = cycle.validityDays;
  }

  #grow(): void {
    this.#numbers = grown(this.#numbers, 2 * this.#numbers.length);
    this.#ids = grown(this.#ids, 2 * this.#ids.length);
    this.#states = grown(this.#states, 2 * this.#states.length);
    this.#next = grown(this.#next, 2 * this.#next.length);
  }
}
