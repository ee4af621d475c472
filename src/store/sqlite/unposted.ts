// The end users whose holdings wait to be posted, as the writer knows them. They are posted together with their
// neighbours, a few pages at a time, those that began to wait first before the others. What waits is in the journal: after
// a crash it is found there.
//
//   waiting in a neighbourhood ──its turn comes──▶ the next to be posted ──▶ posted, and no longer known here

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { HoldingsWriter } from './holdings-writer.ts';
import { headsOf, JournalReader, nameOfUser, userNamed } from './journal.ts';
import { type Holdings, isCounted, prepare } from './rows.ts';

export interface PostingLimits {
  /** End users that wait at most. */
  readonly usersMax: number;
  /** Cycles that are held for them at most: what they cost in memory, a third of a kibibyte each. */
  readonly cyclesMax: number;
  /** Postings behind what is posted for certain, at most: a start looks through them. */
  readonly tailMax: number;
  /** Postings of one end user that wait at most: a read redoes them. */
  readonly ofUserMax: number;
}

export const POSTING_LIMITS: PostingLimits = { usersMax: 50_000, cyclesMax: 250_000, tailMax: 100_000, ofUserMax: 64 };

/** What was posted last is stored when it has moved on by so much of the tail that may be. */
const STORED_STEPS = 8;

/** End users whose UUIDs begin with the same digits stand on the same few pages: 1 of 4,096 in an account. */
const NEIGHBOUR_DIGITS = 3;

/** More of them are posted as they come, since to sort them would hold up a batch. */
const SORTED_MAX = 4_096;

interface Waiting {
  readonly user: EndUserKey;
  readonly name: string;
  /** Null until it is looked at, for what was found in the journal at a start. */
  stored: Holdings | null;
  current: Holdings;
}

interface Neighbours {
  /** Nobody among them waits for an earlier posting to be posted. */
  readonly since: number;
  readonly waiting: Waiting[];
}

export class Unposted {
  readonly #limits: PostingLimits;
  readonly #journal: JournalReader;
  readonly #holdings: HoldingsWriter;
  readonly #savePosted: StatementSync;
  readonly #users = new Map<string, Waiting>();
  /** In the order in which they began to wait. */
  readonly #neighbours = new Map<string, Neighbours>();
  /** Those whose turn it is, the next one last. */
  #turn: Neighbours;
  #lastPosting: number;
  /** Of all who wait, their current cycles. */
  #cycles = 0;
  #postedStored: number;
  #postedNow: string[] = [];

  /** Begins with what the journal says. */
  constructor(db: DatabaseSync, limits: PostingLimits) {
    this.#limits = limits;
    this.#journal = new JournalReader(db);
    this.#holdings = new HoldingsWriter(db);
    this.#savePosted = prepare(db, 'UPDATE posted SET posting = ?');
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
    this.#postedStored = Number(db.prepare('SELECT posting FROM posted').get()?.posting);
    const since = this.#postedStored + 1;
    this.#turn = { since, waiting: [] };
    for (const [name, latestPosting] of headsOf(db)) {
      const current = { cycles: [], latestPosting, postingCount: 0, chain: null };
      this.#wait({ user: userNamed(name), name, stored: null, current }, since);
    }
  }

  /** Whether somebody waits. */
  get isWaited(): boolean {
    return this.#users.size > 0;
  }

  /** The latest posting of an end user that waits; 0 for one that does not. */
  headOf(user: EndUserKey): number {
    return this.#users.get(nameOfUser(user))?.current.latestPosting ?? 0;
  }

  /** Whether something was posted since `takePosted`. */
  get hasPosted(): boolean {
    return this.#postedNow.length > 0;
  }

  /** The names of those that were posted since this was asked last. */
  takePosted(): string[] {
    const posted = this.#postedNow;
    this.#postedNow = [];
    return posted;
  }

  /** @returns the cycles that end behind `now`, and the one that renews, in burn order */
  load(user: EndUserKey, now: Instant): Holdings {
    const waiting = this.#users.get(nameOfUser(user));
    if (waiting === undefined) return this.#journal.read(user, undefined, now);
    this.#look(waiting, now);
    if (waiting.current.cycles.every((cycle) => isCounted(cycle, now))) return waiting.current;
    // Some have ended while it waited: they leave by way of the file.
    this.#post(waiting);
    return this.#journal.read(user, undefined, now);
  }

  /**
   * Takes over what an end user has after a batch.
   *
   * @param loaded what it had before, as `load` gave it
   * @param current the cycles of `loaded`, each in its place, then those that are new
   */
  take(user: EndUserKey, loaded: Holdings, current: Holdings): void {
    const name = nameOfUser(user);
    assert(current.latestPosting !== null, 'whoever has holdings has a posting');
    const first = this.#lastPosting + 1;
    this.#lastPosting = current.latestPosting;
    const known = this.#users.get(name);
    const waiting = known ?? newcomer(user, name, loaded);
    this.#hold(waiting, current);
    const { stored } = waiting;
    assert(stored !== null, 'an end user is looked at before it changes');
    if (!isRedone(loaded, current) || current.postingCount - stored.postingCount >= this.#limits.ofUserMax)
      this.#post(waiting);
    else if (known === undefined) this.#wait(waiting, first);
  }

  /** Posts as many as must be, or all up to `usersMax`. */
  post(usersMax: number, all = false): void {
    for (let posted = 0; posted < usersMax && (all ? this.#users.size > 0 : this.#isFull); posted++) {
      const next = this.#next();
      if (next === null) break;
      this.#post(next);
    }
    this.#store(all);
  }

  get #isFull(): boolean {
    const { usersMax, cyclesMax, tailMax } = this.#limits;
    const isTailLong = this.#lastPosting - this.#posted > tailMax;
    return this.#users.size > usersMax || this.#cycles > cyclesMax || isTailLong;
  }

  /** Up to which posting everybody is posted. */
  get #posted(): number {
    if (this.#turn.waiting.length > 0) return this.#turn.since - 1;
    const [first] = this.#neighbours.values();
    return first === undefined ? this.#lastPosting : first.since - 1;
  }

  #wait(waiting: Waiting, since: number): void {
    this.#users.set(waiting.name, waiting);
    const digits = waiting.name.slice(0, waiting.name.indexOf('/') + 1 + NEIGHBOUR_DIGITS);
    const neighbours = this.#neighbours.get(digits);
    if (neighbours === undefined) this.#neighbours.set(digits, { since, waiting: [waiting] });
    else neighbours.waiting.push(waiting);
  }

  /** Nobody in turn is posted twice: who is posted out of turn is no longer the one that is known by the name. */
  #next(): Waiting | null {
    for (;;) {
      const next = this.#turn.waiting.pop();
      if (next !== undefined && this.#users.get(next.name) === next) return next;
      if (next !== undefined) continue;
      const [first] = this.#neighbours;
      if (first === undefined) return null;
      const [digits, neighbours] = first;
      this.#neighbours.delete(digits);
      if (neighbours.waiting.length <= SORTED_MAX) neighbours.waiting.sort((a, b) => (a.name < b.name ? 1 : -1));
      this.#turn = neighbours;
    }
  }

  #post(waiting: Waiting): void {
    this.#look(waiting, INSTANT_MAX);
    this.#holdings.write(waiting.user, waiting.stored as Holdings, waiting.current);
    this.#cycles -= waiting.current.cycles.length;
    if (this.#users.delete(waiting.name)) this.#postedNow.push(waiting.name);
  }

  #look(waiting: Waiting, now: Instant): void {
    if (waiting.stored !== null) return;
    const { stored, current } = this.#journal.redo(waiting.user, waiting.current.latestPosting as number, now);
    waiting.stored = stored;
    this.#hold(waiting, current);
  }

  #hold(waiting: Waiting, current: Holdings): void {
    this.#cycles += current.cycles.length - waiting.current.cycles.length;
    waiting.current = current;
  }

  #store(always: boolean): void {
    const posted = this.#posted;
    const step = this.#limits.tailMax / STORED_STEPS;
    if (posted - this.#postedStored < (always ? 1 : step)) return;
    this.#savePosted.run(posted);
    this.#postedStored = posted;
  }
}

/** Holds nothing yet. */
function newcomer({ account, endUser }: EndUserKey, name: string, stored: Holdings): Waiting {
  return { user: { account, endUser }, name, stored, current: { ...stored, cycles: [] } };
}

/** Whether the journal tells how the one came from the other: additions and subtractions do, for an end user that is stored. */
function isRedone(before: Holdings, after: Holdings): boolean {
  if (before.latestPosting === null) return false;
  // A chain that is no longer kept ends; redone, it would go on.
  if (before.chain !== null && after.chain === null) return false;
  const isTold = (cycle: Cycle, place: number) => {
    const earlier = before.cycles[place];
    return earlier === undefined
      ? cycle.type === 'one-time' && cycle.end < INSTANT_MAX
      : cycle.status === earlier.status;
  };
  return after.cycles.every(isTold);
}
