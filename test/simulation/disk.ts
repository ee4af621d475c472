// What is on stable storage in a simulation: only what was committed, apart from whatever the processes hold. It also has
// what a database server keeps for the processes on it: row locks, and the time, which never goes back.

import type { ApiKey } from '../../src/accounts/api-key.ts';
import type { EndUserKey } from '../../src/ledger/command.ts';
import { type Cycle, hasEnded, inBurnOrder, renews } from '../../src/ledger/cycle.ts';
import type { Folded, UserChange } from '../../src/ledger/fold.ts';
import type { IdempotencyRecord } from '../../src/ledger/idempotency.ts';
import { nameOf } from '../../src/ledger/idempotency.ts';
import { type Instant, LAST_INSTANT } from '../../src/ledger/instant.ts';
import { loadedBehind } from '../../src/ledger/movement.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { TransactionIds } from '../../src/store/transaction-ids.ts';
import type { Owner } from './virtual-time.ts';

export interface UserRows {
  readonly user: EndUserKey;
  /** All of them, in no order that means anything. */
  cycles: Cycle[];
  /** Of these, all that end behind `liveBehind` and the one that renews, so that nobody looks through all that ever was. */
  live: Cycle[];
  liveBehind: Instant;
  /** In the order of the commits. */
  readonly postings: Posting[];
}

/** On the rows of some end users, asked for or held. */
export interface Lock {
  readonly names: readonly string[];
  readonly owner: Owner;
  readonly granted: (lock: Lock) => void;
  /** COMMIT was sent: the server goes on with it, and holds the rows until then, whatever becomes of the client. */
  isCommitting: boolean;
}

/** By account, then end user. V8 looks for each text that it asks a map for in a table of all such, unless it is there already. */
const userNames = new Map<number, Map<string, string>>();

/** Simulations have few end users, and all of them the same ones. */
export function userName({ account, endUser }: EndUserKey): string {
  const known = userNames.get(account)?.get(endUser);
  if (known !== undefined) return known;
  const name = `${account}/${endUser}`;
  userNames.set(account, (userNames.get(account) ?? new Map()).set(endUser, name));
  return name;
}

export class Disk {
  readonly users = new Map<string, UserRows>();
  readonly answers = new Map<string, IdempotencyRecord>();
  readonly apiKeys = new Map<string, ApiKey>();
  readonly ids: TransactionIds;
  /** What the machine's clock says; it jumps. */
  readonly wall: () => number;
  #latest: Instant = 0;
  /** No answer is older, so that nobody looks through all of them once a second. */
  #answeredFrom: Instant = 0;
  readonly #held = new Map<string, Lock>();
  #waiting: Lock[] = [];

  constructor(wall: () => number, tails: () => string) {
    this.wall = wall;
    this.ids = new TransactionIds({ at: 0, sequence: 0 }, tails);
  }

  /** The latest instant that anybody was told. */
  get latest(): Instant {
    return this.#latest;
  }

  /** The time of what is being done now. */
  tick(): Instant {
    this.#latest = this.peek();
    return this.#latest;
  }

  peek(): Instant {
    return Math.min(Math.max(this.#latest, Math.floor(this.wall())), LAST_INSTANT);
  }

  /** @param behind the cycles that end later are loaded, and the one that renews */
  load(user: EndUserKey, behind: Instant): Cycle[] {
    const rows = this.users.get(userName(user));
    if (rows === undefined) return [];
    const known = behind < rows.liveBehind ? rows.cycles : rows.live;
    const loaded = known.filter((cycle) => cycle.end > behind || renews(cycle));
    if (loaded.length < known.length && behind >= rows.liveBehind) {
      rows.live = loaded.slice();
      rows.liveBehind = behind;
    }
    return inBurnOrder(loaded);
  }

  loadForBatch(user: EndUserKey, now: Instant): Cycle[] {
    return this.load(user, loadedBehind(now));
  }

  loadForReader(user: EndUserKey, now: Instant): Cycle[] {
    return this.load(user, now).filter((cycle) => renews(cycle) || !hasEnded(cycle, now));
  }

  /** One commit: all of it, at this instant. */
  commit({ changes, answers }: Pick<Folded, 'changes' | 'answers'>): void {
    for (const change of changes) this.#apply(change);
    for (const answer of answers) {
      this.answers.set(nameOf(answer, answer.key), answer);
      this.#answeredFrom = Math.min(this.#answeredFrom, answer.answeredAt);
    }
  }

  #apply({ user, opened, changed, postings }: UserChange): void {
    const name = userName(user);
    const rows = this.users.get(name) ?? newRows(user);
    this.users.set(name, rows);
    for (const cycles of [rows.cycles, rows.live]) {
      for (const { before, after } of changed) {
        const place = cycles.findLastIndex(({ id, period }) => id === before.id && period === before.period);
        if (place >= 0) cycles[place] = after;
      }
      cycles.push(...opened);
    }
    rows.postings.push(...postings);
  }

  /** End users with something to renew, the longest overdue first. */
  due(limit: number): EndUserKey[] {
    const now = this.peek();
    const found: { end: Instant; user: EndUserKey }[] = [];
    for (const { user, live } of this.users.values()) {
      const renewing = live.findLast(renews);
      if (renewing !== undefined && hasEnded(renewing, now)) found.push({ end: renewing.end, user });
    }
    found.sort((a, b) => a.end - b.end);
    return found.slice(0, limit).map(({ user }) => user);
  }

  /** @returns the names of those that it forgot, `max` at the most */
  deleteExpiredRecords(before: Instant, max: number): string[] {
    if (before <= this.#answeredFrom) return [];
    const old: string[] = [];
    let oldest = Number.POSITIVE_INFINITY;
    for (const [name, { answeredAt }] of this.answers) {
      if (answeredAt >= before) oldest = Math.min(oldest, answeredAt);
      else if (old.push(name) === max) break;
    }
    for (const name of old) this.answers.delete(name);
    if (old.length < max) this.#answeredFrom = oldest;
    return old;
  }

  hasAnswersBefore(instant: Instant): boolean {
    for (const { answeredAt } of this.answers.values()) if (answeredAt < instant) return true;
    return false;
  }

  /** The next instant at which a cycle of one of these end users renews; null when none does. */
  nextRenewalOf(names: readonly string[]): Instant | null {
    const now = this.peek();
    let next: Instant | null = null;
    for (const name of names) {
      const end = this.users.get(name)?.live.findLast(renews)?.end;
      if (end !== undefined && end > now && (next === null || end < next)) next = end;
    }
    return next;
  }

  /** The instants after `now` at which a cycle ends, soonest first. */
  endsAfter(now: Instant): Instant[] {
    const ends = new Set<Instant>();
    for (const { cycles } of this.users.values()) for (const { end } of cycles) if (end > now) ends.add(end);
    return [...ends].sort((a, b) => a - b);
  }

  /** Takes the locks of all of them at once, when they are free; those who came first go first. */
  lock(names: readonly string[], owner: Owner): Promise<Lock> {
    if (this.#waiting.length === 0 && names.every((name) => !this.#held.has(name))) {
      const lock = { names, owner, granted: atOnce, isCommitting: false };
      for (const name of names) this.#held.set(name, lock);
      return Promise.resolve(lock);
    }
    return new Promise((granted) => {
      this.#waiting.push({ names, owner, granted, isCommitting: false });
      this.#grant();
    });
  }

  unlock(lock: Lock): void {
    for (const name of lock.names) if (this.#held.get(name) === lock) this.#held.delete(name);
    this.#grant();
  }

  /** What a server does once it notices that a client is gone. */
  unlockAllOf(owner: Owner): void {
    this.#waiting = this.#waiting.filter((lock) => lock.owner !== owner);
    for (const lock of new Set(this.#held.values())) if (lock.owner === owner && !lock.isCommitting) this.unlock(lock);
    this.#grant();
  }

  get isQuiet(): boolean {
    return this.#held.size === 0 && this.#waiting.length === 0;
  }

  #grant(): void {
    if (this.#waiting.length === 0) return;
    const blocked = new Set<string>();
    this.#waiting = this.#waiting.filter((lock) => {
      const isFree = lock.names.every((name) => !this.#held.has(name) && !blocked.has(name));
      for (const name of lock.names) {
        if (isFree) this.#held.set(name, lock);
        else blocked.add(name);
      }
      if (isFree) lock.granted(lock);
      return !isFree;
    });
  }
}

const atOnce = () => {};

function newRows({ account, endUser }: EndUserKey): UserRows {
  return { user: { account, endUser }, cycles: [], live: [], liveBehind: 0, postings: [] };
}
