// The end users whose holdings wait to be posted, as the writer knows them. They are posted together with their
// neighbours, a few pages at a time, those that began to wait first before the others. What waits is in the journal: after
// a crash it is found there. Who is posted stays known until the room is needed, so that it need not be loaded again.
//
//   waiting in a neighbourhood ──its turn comes──▶ posted, still known ──room is needed──▶ no longer known here
//             └────────────────── something is entered ◀──────┘

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { UserChange } from '../../ledger/fold.ts';
import { INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { headsOf } from './heads.ts';
import { HoldingsWriter } from './holdings-writer.ts';
import { JournalReader } from './journal.ts';
import { type Holdings, isCounted, prepare } from './rows.ts';
import { SlotQueue } from './slot-queue.ts';
import { grown, NO_SLOT, type Slot } from './user-table.ts';
import { WaitingHoldings } from './waiting-holdings.ts';

export interface PostingLimits {
  /** End users that are known at most. */
  readonly usersMax: number;
  /** Cycles that are held for them at most: 80 bytes each, and a third of a kibibyte for end users with many. */
  readonly cyclesMax: number;
  /** Postings behind what is posted for certain, at most: a start looks through them. */
  readonly tailMax: number;
  /** Postings of one end user that wait at most: a read redoes them. */
  readonly ofUserMax: number;
}

export const POSTING_LIMITS: PostingLimits = { usersMax: 100_000, cyclesMax: 400_000, tailMax: 150_000, ofUserMax: 64 };

/** What was posted last is stored when it has moved on by so much of the tail that may be. */
const STORED_STEPS = 8;

/** For each command at most, which is twice as many as may come to wait: the journal never runs away from the holdings. */
const POSTED_PER_COMMAND = 2;

/** Neighbours that are posted in one go, at most: their pages are written once. */
const RUN_MAX = 64;

/** More of them are posted as they come, since to sort them would hold up a batch. */
const SORTED_MAX = 4_096;

/** An end user as it was loaded for a batch. */
export interface Loaded {
  /** Its place among those who are known; `NO_SLOT` for one who is not. */
  readonly slot: Slot;
  readonly holdings: Holdings;
}

interface Neighbours {
  readonly neighbourhood: number;
  /** Nobody among them waits for an earlier posting to be posted. */
  readonly since: number;
  readonly slots: Slot[];
  /** Those who began to wait after them. */
  next: Neighbours | null;
}

export class Unposted {
  readonly #limits: PostingLimits;
  readonly #journal: JournalReader;
  readonly #holdings: HoldingsWriter;
  readonly #savePosted: StatementSync;
  readonly #waiting: WaitingHoldings;
  readonly #neighbours = new Map<number, Neighbours>();
  /** Of those in `#neighbours`, who began to wait first, and last: a Map would look for its first one among all that left. */
  #first: Neighbours | null = null;
  #last: Neighbours | null = null;
  /** Those whose turn it is, the next one last. */
  #turn: Pick<Neighbours, 'since' | 'slots'>;
  /** By slot, 1 for whoever stands among its neighbours or has its turn. */
  #stands = new Uint8Array(0);
  /** Those who were posted, the earliest first; some of them wait again. */
  readonly #known = new SlotQueue();
  /** How many stand among their neighbours or have their turn. */
  #standing = 0;
  /** How many are to be posted, now or when they are as many as a run. */
  #due = 0;
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
    return this.#standing > 0;
  }

  /** The latest posting of an end user that waits; 0 for one that does not. */
  headOf(slot: Slot): number {
    if (slot === NO_SLOT || !this.#waiting.users.isTaken(slot)) return 0;
    return this.#waiting.isPosted(slot) ? 0 : this.#waiting.latestPosting(slot);
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
   * @returns with the cycles that end behind `now`, and the one that renews, in burn order
   */
  load(user: EndUserKey, now: Instant, stored?: Holdings): Loaded {
    const slot = this.#waiting.users.find(user);
    if (slot === NO_SLOT) return { slot, holdings: stored ?? this.#journal.read(user, undefined, now) };
    this.#look(slot, user, now);
    const holdings = this.#waiting.holdings(slot);
    if (this.#waiting.firstEnd(slot) > now || holdings.cycles.every((cycle) => isCounted(cycle, now)))
      return { slot, holdings };
    // Some have ended while it waited: they leave by way of the file.
    this.#post(slot, user);
    const left = this.#journal.read(user, undefined, now);
    this.#waiting.set(slot, left, left);
    return { slot, holdings: left };
  }

  /**
   * Takes over what an end user has after a batch.
   *
   * @param loaded what it had before, as `load` gave it
   * @param current the cycles of `loaded`, each in its place, then those that are new
   * @param change how these differ
   * @returns where it is known now, if it is
   */
  take({ slot, holdings }: Loaded, current: Holdings, change: UserChange): Slot {
    const { user } = change;
    assert(current.latestPosting !== null, 'whoever has holdings has a posting');
    const first = this.#lastPosting + 1;
    this.#lastPosting = current.latestPosting;
    if (isRedone(holdings, current, change)) {
      if (slot !== NO_SLOT) return this.#change(slot, user, holdings, current, first);
      const added = this.#waiting.add(user, holdings, current);
      this.#wait(added, first);
      return added;
    }
    if (slot !== NO_SLOT) this.#post(slot, user);
    this.#holdings.write(user, holdings, current);
    if (slot !== NO_SLOT) this.#waiting.set(slot, current, current);
    return slot;
  }

  /** Inserts what is inserted together. */
  flush(): void {
    this.#holdings.flush();
  }

  /**
   * Posts as many as are due beside a batch of `commands`: as a rule, so many that everybody has had a turn by the time that
   * the tail has its length, so that no batch has much more to do than another. Those who stand in line have waited for half
   * of that, as a mean.
   */
  keepUp(commands: number): void {
    const pace = (2 * this.#standing) / this.#limits.tailMax;
    this.#makeRoom();
    this.#due += commands * (this.#isFull ? POSTED_PER_COMMAND : Math.min(pace, POSTED_PER_COMMAND));
    while (this.#due >= (this.#isFull ? 1 : this.#run)) {
      if (!this.#postNext()) this.#due = 0;
      else this.#due -= 1;
      this.#makeRoom();
    }
    this.flush();
    this.#store(this.#limits.tailMax / STORED_STEPS);
  }

  /** Posts up to `usersMax` of those who wait. */
  post(usersMax: number): void {
    for (let posted = 0; posted < usersMax && this.#postNext(); posted++);
    this.flush();
    this.#store(1);
  }

  /** How many are posted in one go. */
  get #run(): number {
    const next = this.#turn.slots.length > 0 ? this.#turn : this.#first;
    return Math.max(1, Math.min(next?.slots.length ?? 0, RUN_MAX));
  }

  /** What is new of those who are posted one behind the other is there behind a `flush`. */
  #postNext(): boolean {
    const slot = this.#next();
    if (slot === null) return false;
    // To post somebody who was found in the journal, no more is read of its cycles than what was spent from.
    const isKnown = this.#waiting.isLookedAt(slot) && this.#waiting.hasFewCycles(slot);
    this.#bring(slot, this.#waiting.users.user(slot));
    this.#stands[slot] = 0;
    this.#standing -= 1;
    if (isKnown) this.#known.push(slot);
    else this.#waiting.remove(slot);
    return true;
  }

  get #isFull(): boolean {
    return this.#isCrowded || this.#lastPosting - this.#posted > this.#limits.tailMax;
  }

  get #isCrowded(): boolean {
    return this.#waiting.users.size > this.#limits.usersMax || this.#waiting.cycleCount > this.#limits.cyclesMax;
  }

  /** As far as those who do not wait leave it. */
  #makeRoom(): void {
    while (this.#isCrowded) {
      const slot = this.#known.shift();
      if (slot === NO_SLOT) return;
      if (this.#stands[slot] === 0 && this.#waiting.users.isTaken(slot)) this.#waiting.remove(slot);
    }
  }

  /** Up to which posting everybody is posted. */
  get #posted(): number {
    if (this.#turn.slots.length > 0) return this.#turn.since - 1;
    return this.#first === null ? this.#lastPosting : this.#first.since - 1;
  }

  #wait(slot: Slot, since: number): void {
    const neighbourhood = this.#waiting.users.neighbourhood(slot);
    const neighbours = this.#neighbours.get(neighbourhood);
    if (neighbours === undefined) this.#join({ neighbourhood, since, slots: [slot], next: null });
    else neighbours.slots.push(slot);
    if (slot >= this.#stands.length) this.#stands = grown(this.#stands, this.#waiting.users.capacity);
    this.#stands[slot] = 1;
    this.#standing += 1;
  }

  #join(neighbours: Neighbours): void {
    this.#neighbours.set(neighbours.neighbourhood, neighbours);
    if (this.#first === null || this.#last === null) this.#first = neighbours;
    else this.#last.next = neighbours;
    this.#last = neighbours;
  }

  #next(): Slot | null {
    const next = this.#turn.slots.pop();
    if (next !== undefined) return next;
    const neighbours = this.#first;
    if (neighbours === null) return null;
    this.#first = neighbours.next;
    this.#neighbours.delete(neighbours.neighbourhood);
    const { users } = this.#waiting;
    if (neighbours.slots.length <= SORTED_MAX) neighbours.slots.sort((a, b) => users.compare(b, a));
    this.#turn = neighbours;
    return neighbours.slots.pop() ?? null;
  }

  /** One who is never left alone is posted now and then, and waits on: it is loaded no more often than its turn comes. */
  #change(slot: Slot, user: EndUserKey, loaded: Holdings, current: Holdings, since: number): Slot {
    this.#waiting.change(slot, loaded, current);
    if (this.#stands[slot] === 0) this.#wait(slot, since);
    if (this.#waiting.waitingPostings(slot) >= this.#limits.ofUserMax) this.#post(slot, user);
    return slot;
  }

  /** It still has its place here. */
  #post(slot: Slot, user: EndUserKey): void {
    this.#bring(slot, user);
    this.flush();
  }

  #bring(slot: Slot, user: EndUserKey): void {
    this.#look(slot, user, INSTANT_MAX);
    this.#postedNow.push(user);
    if (this.#waiting.isPosted(slot)) return;
    this.#holdings.bring(user, this.#waiting.difference(slot));
    this.#waiting.markPosted(slot);
  }

  #look(slot: Slot, user: EndUserKey, now: Instant): void {
    if (this.#waiting.isLookedAt(slot)) return;
    const { stored, current } = this.#journal.redo(user, this.#waiting.latestPosting(slot), now);
    this.#waiting.set(slot, stored, current);
  }

  /** What was posted, if it has moved on by so many postings since it was stored. */
  #store(step: number): void {
    const posted = this.#posted;
    if (posted - this.#postedStored < step) return;
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
