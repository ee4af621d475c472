// The end users whose holdings wait to be posted, as the writer knows them. They are posted together with their
// neighbours, a few pages at a time, those that began to wait first before the others. What waits is in the journal: after
// a crash it is found there.
//
//   waiting in a neighbourhood ──its turn comes──▶ the next to be posted ──▶ posted, and no longer known here

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { UserChange } from '../../ledger/fold.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { headsOf } from './heads.ts';
import { HoldingsWriter } from './holdings-writer.ts';
import { JournalReader } from './journal.ts';
import { type Holdings, isCounted, prepare } from './rows.ts';
import { NO_SLOT, type Slot } from './user-table.ts';
import { WaitingHoldings } from './waiting-holdings.ts';

export interface PostingLimits {
  /** End users that wait at most. */
  readonly usersMax: number;
  /** Cycles that are held for them at most: 80 bytes each, and a third of a kibibyte for end users with many. */
  readonly cyclesMax: number;
  /** Postings behind what is posted for certain, at most: a start looks through them. */
  readonly tailMax: number;
  /** Postings of one end user that wait at most: a read redoes them. */
  readonly ofUserMax: number;
}

export const POSTING_LIMITS: PostingLimits = { usersMax: 100_000, cyclesMax: 300_000, tailMax: 150_000, ofUserMax: 64 };

/** What was posted last is stored when it has moved on by so much of the tail that may be. */
const STORED_STEPS = 8;

/** More of them are posted as they come, since to sort them would hold up a batch. */
const SORTED_MAX = 4_096;

interface Neighbours {
  /** Nobody among them waits for an earlier posting to be posted. */
  readonly since: number;
  readonly slots: Slot[];
}

export class Unposted {
  readonly #limits: PostingLimits;
  readonly #journal: JournalReader;
  readonly #holdings: HoldingsWriter;
  readonly #savePosted: StatementSync;
  readonly #waiting: WaitingHoldings;
  /** In the order in which they began to wait. */
  readonly #neighbours = new Map<number, Neighbours>();
  /** Those whose turn it is, the next one last. */
  #turn: Neighbours;
  #lastPosting: number;
  #postedStored: number;
  #postedNow: EndUserKey[] = [];

  /** Begins with what the journal says. */
  constructor(db: DatabaseSync, limits: PostingLimits) {
    this.#limits = limits;
    this.#journal = new JournalReader(db);
    this.#holdings = new HoldingsWriter(db);
    this.#savePosted = prepare(db, 'UPDATE posted SET posting = ?');
    this.#lastPosting = Number(db.prepare('SELECT max(posting) AS last FROM postings').get()?.last ?? 0);
    this.#postedStored = Number(db.prepare('SELECT posting FROM posted').get()?.posting);
    const since = this.#postedStored + 1;
    this.#turn = { since, slots: [] };
    this.#waiting = new WaitingHoldings(headsOf(db));
    for (const slot of this.#waiting.users.slots()) this.#wait(slot, since);
  }

  /** Whether somebody waits. */
  get isWaited(): boolean {
    return this.#waiting.users.size > 0;
  }

  /** The latest posting of an end user that waits; 0 for one that does not. */
  headOf(user: EndUserKey): number {
    const slot = this.#waiting.users.find(user);
    return slot === NO_SLOT || this.#waiting.isPosted(slot) ? 0 : this.#waiting.latestPosting(slot);
  }

  /** Whether something was posted since `takePosted`. */
  get hasPosted(): boolean {
    return this.#postedNow.length > 0;
  }

  /** Those that were posted since this was asked last. */
  takePosted(): EndUserKey[] {
    const posted = this.#postedNow;
    this.#postedNow = [];
    return posted;
  }

  /**
   * @param stored what the file says, where that is known
   * @returns the cycles that end behind `now`, and the one that renews, in burn order
   */
  load(user: EndUserKey, now: Instant, stored?: Holdings): Holdings {
    const slot = this.#waiting.users.find(user);
    if (slot === NO_SLOT) return stored ?? this.#journal.read(user, undefined, now);
    this.#look(slot, user, now);
    const holdings = this.#waiting.holdings(slot);
    if (this.#waiting.firstEnd(slot) > now || holdings.cycles.every((cycle) => isCounted(cycle, now))) return holdings;
    // Some have ended while it waited: they leave by way of the file.
    this.#post(slot, user);
    const left = this.#journal.read(user, undefined, now);
    this.#waiting.set(slot, left, left);
    return left;
  }

  /**
   * Takes over what an end user has after a batch.
   *
   * @param loaded what it had before, as `load` gave it
   * @param current the cycles of `loaded`, each in its place, then those that are new
   * @param change how these differ
   */
  take(loaded: Holdings, current: Holdings, change: UserChange): void {
    const { user } = change;
    assert(current.latestPosting !== null, 'whoever has holdings has a posting');
    const first = this.#lastPosting + 1;
    this.#lastPosting = current.latestPosting;
    const slot = this.#waiting.users.find(user);
    if (isRedone(loaded, current, change)) {
      if (slot === NO_SLOT) this.#wait(this.#waiting.add(user, loaded, current), first);
      else this.#change(slot, user, loaded, current);
      return;
    }
    if (slot !== NO_SLOT) this.#post(slot, user);
    this.#holdings.write(user, loaded, current);
    if (slot !== NO_SLOT) this.#waiting.set(slot, current, current);
  }

  /** Behind what was taken over: inserts what is inserted together. */
  flush(): void {
    this.#holdings.flush();
  }

  /** Posts as many as must be, or all up to `usersMax`. */
  post(usersMax: number, all = false): void {
    for (let posted = 0; posted < usersMax && (all ? this.isWaited : this.#isFull); posted++) {
      const slot = this.#next();
      if (slot === null) break;
      this.#post(slot, this.#waiting.users.user(slot));
      this.#waiting.remove(slot);
    }
    this.#store(all);
  }

  get #isFull(): boolean {
    const { usersMax, cyclesMax, tailMax } = this.#limits;
    const isTailLong = this.#lastPosting - this.#posted > tailMax;
    return this.#waiting.users.size > usersMax || this.#waiting.cycleCount > cyclesMax || isTailLong;
  }

  /** Up to which posting everybody is posted. */
  get #posted(): number {
    if (this.#turn.slots.length > 0) return this.#turn.since - 1;
    const [first] = this.#neighbours.values();
    return first === undefined ? this.#lastPosting : first.since - 1;
  }

  #wait(slot: Slot, since: number): void {
    const neighbourhood = this.#waiting.users.neighbourhood(slot);
    const neighbours = this.#neighbours.get(neighbourhood);
    if (neighbours === undefined) this.#neighbours.set(neighbourhood, { since, slots: [slot] });
    else neighbours.slots.push(slot);
  }

  #next(): Slot | null {
    const next = this.#turn.slots.pop();
    if (next !== undefined) return next;
    const [first] = this.#neighbours;
    if (first === undefined) return null;
    const [neighbourhood, neighbours] = first;
    this.#neighbours.delete(neighbourhood);
    const { users } = this.#waiting;
    if (neighbours.slots.length <= SORTED_MAX) neighbours.slots.sort((a, b) => users.compare(b, a));
    this.#turn = neighbours;
    return neighbours.slots.pop() ?? null;
  }

  /** One who is never left alone is posted now and then, and waits on: it is loaded no more often than its turn comes. */
  #change(slot: Slot, user: EndUserKey, loaded: Holdings, current: Holdings): void {
    this.#waiting.change(slot, loaded, current);
    if (this.#waiting.waitingPostings(slot) < this.#limits.ofUserMax) return;
    this.#post(slot, user);
    this.#waiting.set(slot, current, current);
  }

  /** It still has its place here. */
  #post(slot: Slot, user: EndUserKey): void {
    this.#look(slot, user, INSTANT_MAX);
    this.#postedNow.push(user);
    if (!this.#waiting.isPosted(slot)) this.#holdings.bring(user, this.#waiting.difference(slot));
  }

  #look(slot: Slot, user: EndUserKey, now: Instant): void {
    if (this.#waiting.isLookedAt(slot)) return;
    const { stored, current } = this.#journal.redo(user, this.#waiting.latestPosting(slot), now);
    this.#waiting.set(slot, stored, current);
  }

  #store(always: boolean): void {
    const posted = this.#posted;
    const step = this.#limits.tailMax / STORED_STEPS;
    if (posted - this.#postedStored < (always ? 1 : step)) return;
    this.#savePosted.run(posted);
    this.#postedStored = posted;
  }
}

/** Whether the journal tells what was done: additions and subtractions are, for an end user that is stored. */
function isRedone(before: Holdings, after: Holdings, { opened, changed }: UserChange): boolean {
  if (before.latestPosting === null) return false;
  // A chain that is no longer kept ends; redone, it would go on.
  if (before.chain !== null && after.chain === null) return false;
  return (
    opened.every(({ type, end }) => type === 'one-time' && end < INSTANT_MAX) &&
    changed.every((cycle) => cycle.before.status === cycle.after.status)
  );
}
