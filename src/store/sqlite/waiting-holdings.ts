// What is known of the end users who wait to be posted: their holdings as they are, and how these differ from the stored
// ones. Of an end user with few cycles, as most are, all of it is numbers in long arrays; the cycles of one with many stay
// objects, since to make objects of a thousand numbers for each subtraction takes longer than all else that is done for it.

import assert from 'node:assert/strict';
import type { Cycle } from '../../ledger/cycle.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { CycleSlots, type Mark, NEW, NO_CYCLE, SAME, SPENT } from './cycle-slots.ts';
import type { Heads } from './heads.ts';
import type { Holdings } from './rows.ts';
import { grown, type Slot, type UserTable } from './user-table.ts';

/** That are kept as numbers, at most. */
const FEW_CYCLES = 12;

/** A SHA-256 in base64url; where no chain is kept, zeros stand for it. */
const HEAD_LENGTH = 43;

/** Of each end user, five numbers. */
const NUMBERS = 5;
const LATEST = 0;
const COUNT = 1;
const STORED_LATEST = 2;
const STORED_COUNT = 3;
const FIRST_END = 4;

/** For the latest posting that is stored, as long as nobody has looked: postings are counted from 1. */
const UNKNOWN = 0;

interface MarkedCycles {
  readonly cycles: readonly Cycle[];
  /** How each differs from what is stored. */
  readonly marks: Mark[];
}

type OwnHoldings = Omit<Holdings, 'cycles'>;

/** What is to be written to bring the stored holdings of an end user up to those that it has. */
export interface Difference {
  readonly spent: readonly Cycle[];
  readonly opened: readonly Cycle[];
  readonly own: OwnHoldings;
}

export class WaitingHoldings {
  readonly users: UserTable;
  readonly #few = new CycleSlots();
  readonly #many = new Map<Slot, MarkedCycles>();
  #numbers = new Float64Array(0);
  /** The first of its cycles in `#few`. */
  #first = new Int32Array(0);
  #chains = Buffer.alloc(0);
  #cycleCount = 0;

  /** @param heads of those who wait; nobody else uses them from now on */
  constructor(heads: Heads) {
    this.users = heads.users;
    for (const [slot, head] of heads.slots()) this.#begin(slot, head);
  }

  /** Cycles of all that have been looked at. */
  get cycleCount(): number {
    return this.#cycleCount;
  }

  isLookedAt(slot: Slot): boolean {
    return this.#get(slot, STORED_LATEST) !== UNKNOWN;
  }

  /** Whether its stored holdings count all of its postings. */
  isPosted(slot: Slot): boolean {
    return this.#get(slot, LATEST) === this.#get(slot, STORED_LATEST);
  }

  latestPosting(slot: Slot): number {
    return this.#get(slot, LATEST);
  }

  /** Whether its cycles are kept as numbers. */
  hasFewCycles(slot: Slot): boolean {
    return !this.#many.has(slot);
  }

  /** How many of its postings its stored holdings do not count. */
  waitingPostings(slot: Slot): number {
    return this.#get(slot, COUNT) - this.#get(slot, STORED_COUNT);
  }

  /** None of its cycles ends before it. */
  firstEnd(slot: Slot): Instant {
    return this.#get(slot, FIRST_END);
  }

  holdings(slot: Slot): Holdings {
    return { cycles: this.#markedCycles(slot).cycles, ...this.#own(slot) };
  }

  /**
   * Makes room for an end user and what it has.
   *
   * @param current the cycles of `stored`, each in its place, then those that are new
   */
  add(user: { account: number; endUser: string }, stored: Holdings, current: Holdings): Slot {
    const slot = this.users.add(user);
    this.#begin(slot, UNKNOWN);
    this.set(slot, stored, current);
    return slot;
  }

  /** From now on these are what is stored and what it has. */
  set(slot: Slot, stored: Holdings, current: Holdings): void {
    assert(stored.latestPosting !== null, 'who waits is stored');
    this.#numbers[slot * NUMBERS + STORED_LATEST] = stored.latestPosting;
    this.#numbers[slot * NUMBERS + STORED_COUNT] = stored.postingCount;
    this.#numbers[slot * NUMBERS + FIRST_END] = firstEnd(stored.cycles);
    const marks: Mark[] = stored.cycles.map(() => SAME);
    this.#keep(slot, marks, stored.cycles, current);
  }

  /** @param before as `holdings` gave it; its cycles are the first ones of `current`, each in its place */
  change(slot: Slot, before: Holdings, current: Holdings): void {
    if (this.#many.has(slot) || current.cycles.length > FEW_CYCLES) {
      this.#keep(slot, this.#marks(slot), before.cycles, current);
      return;
    }
    let last = NO_CYCLE;
    let next = this.#first[slot] as number;
    for (let place = 0; place < before.cycles.length; place++) {
      const cycle = current.cycles[place] as Cycle;
      if (cycle !== before.cycles[place]) this.#few.spend(next, cycle.remaining);
      last = next;
      next = this.#few.next(next);
    }
    const opened = current.cycles.slice(before.cycles.length);
    const added = this.#few.put(
      opened,
      opened.map(() => NEW),
    );
    if (last === NO_CYCLE) this.#first[slot] = added;
    else this.#few.join(last, added);
    this.#cycleCount += opened.length;
    this.#keepOwn(slot, opened, current);
  }

  difference(slot: Slot): Difference {
    const { cycles, marks } = this.#markedCycles(slot);
    const spent = cycles.filter((_, place) => marks[place] === SPENT);
    const opened = cycles.filter((_, place) => marks[place] === NEW);
    return { spent, opened, own: this.#own(slot) };
  }

  /** From now on what it has is what is stored. */
  markPosted(slot: Slot): void {
    this.#numbers[slot * NUMBERS + STORED_LATEST] = this.#get(slot, LATEST);
    this.#numbers[slot * NUMBERS + STORED_COUNT] = this.#get(slot, COUNT);
    this.#many.get(slot)?.marks.fill(SAME);
    for (let each = this.#first[slot] as number; each !== NO_CYCLE; each = this.#few.next(each)) this.#few.unmark(each);
  }

  remove(slot: Slot): void {
    this.#dropCycles(slot);
    this.users.remove(slot);
  }

  #begin(slot: Slot, latestPosting: number): void {
    if (slot >= this.#first.length) this.#grow();
    const at = slot * NUMBERS;
    for (let number = 0; number < NUMBERS; number++) this.#numbers[at + number] = 0;
    this.#numbers[at + LATEST] = latestPosting;
    this.#first[slot] = NO_CYCLE;
  }

  #get(slot: Slot, number: number): number {
    return this.#numbers[slot * NUMBERS + number] as number;
  }

  #keep(slot: Slot, marks: Mark[], before: readonly Cycle[], { cycles, ...own }: Holdings): void {
    assert(marks.length === before.length, 'each cycle has its mark');
    for (let place = 0; place < before.length; place++)
      if (before[place] !== cycles[place] && marks[place] === SAME) marks[place] = SPENT;
    const opened = cycles.slice(before.length);
    for (const _ of opened) marks.push(NEW);
    this.#dropCycles(slot);
    this.#cycleCount += cycles.length;
    if (cycles.length > FEW_CYCLES) this.#many.set(slot, { cycles, marks });
    else this.#first[slot] = this.#few.put(cycles, marks);
    this.#keepOwn(slot, opened, own);
  }

  #keepOwn(slot: Slot, opened: readonly Cycle[], { latestPosting, postingCount, chain }: OwnHoldings): void {
    assert(latestPosting !== null, 'whoever has holdings has a posting');
    const at = slot * NUMBERS;
    this.#numbers[at + FIRST_END] = Math.min(this.#get(slot, FIRST_END), firstEnd(opened));
    this.#numbers[at + LATEST] = latestPosting;
    this.#numbers[at + COUNT] = postingCount;
    this.#keepChain(slot, chain);
  }

  #dropCycles(slot: Slot): void {
    const many = this.#many.get(slot);
    this.#many.delete(slot);
    const few = this.#few.release(this.#first[slot] as number);
    this.#first[slot] = NO_CYCLE;
    this.#cycleCount -= many?.cycles.length ?? few;
  }

  #markedCycles(slot: Slot): MarkedCycles {
    const many = this.#many.get(slot);
    if (many !== undefined) return many;
    const cycles: Cycle[] = [];
    const marks: Mark[] = [];
    for (let each = this.#first[slot] as number; each !== NO_CYCLE; each = this.#few.next(each)) {
      cycles.push(this.#few.cycle(each));
      marks.push(this.#few.mark(each));
    }
    return { cycles, marks };
  }

  #marks(slot: Slot): Mark[] {
    const many = this.#many.get(slot);
    if (many !== undefined) return many.marks;
    const marks: Mark[] = [];
    for (let each = this.#first[slot] as number; each !== NO_CYCLE; each = this.#few.next(each))
      marks.push(this.#few.mark(each));
    return marks;
  }

  #own(slot: Slot): OwnHoldings {
    const at = slot * HEAD_LENGTH;
    const chain = this.#chains[at] === 0 ? null : this.#chains.toString('latin1', at, at + HEAD_LENGTH);
    return { latestPosting: this.#get(slot, LATEST), postingCount: this.#get(slot, COUNT), chain };
  }

  #keepChain(slot: Slot, chain: ChainHash | null): void {
    const at = slot * HEAD_LENGTH;
    if (chain === null) {
      if (this.#chains[at] !== 0) this.#chains.fill(0, at, at + HEAD_LENGTH);
    } else {
      assert(chain.length === HEAD_LENGTH, 'the head of a chain is a SHA-256');
      this.#chains.write(chain, at, 'latin1');
    }
  }

  #grow(): void {
    const { capacity } = this.users;
    this.#numbers = grown(this.#numbers, capacity * NUMBERS);
    this.#first = grown(this.#first, capacity);
    const chains = Buffer.alloc(capacity * HEAD_LENGTH);
    chains.set(this.#chains);
    this.#chains = chains;
  }
}

function firstEnd(cycles: readonly Cycle[]): Instant {
  return cycles.reduce((first, { end }) => Math.min(first, end), INSTANT_MAX);
}
