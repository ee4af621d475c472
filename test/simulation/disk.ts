// The committed data of a simulation, which survives crashes. Like a database server, the disk also manages row locks
// and a clock that never goes back.

import type { ApiKey } from '../../src/accounts/api-key.ts';
import type { DecidedBatch, UserChange } from '../../src/ledger/batch.ts';
import { type EndUserKey, endUserText } from '../../src/ledger/command.ts';
import { type Cycle, inSpendingOrder, isLive } from '../../src/ledger/cycle.ts';
import { type Hold, lapseOrder } from '../../src/ledger/hold.ts';
import { type IdempotencyRecord, nameOf } from '../../src/ledger/idempotency.ts';
import { type Instant, LAST_INSTANT } from '../../src/ledger/instant.ts';
import { NEVER, nextEventAt } from '../../src/ledger/next-event.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { cycleChanges, EMPTY_STATE, type EndUserState } from '../../src/ledger/state.ts';
import type { FeedPosting } from '../../src/store/feed.ts';
import type { IdempotencyRetention } from '../../src/store/ledger-store.ts';
import { isGrant } from '../../src/store/stored-record.ts';
import { type Totals, TotalsSum } from '../../src/store/totals.ts';
import { TransactionIds } from '../../src/store/transaction-ids.ts';
import { StoredEvents } from './simulated-events.ts';
import type { Owner } from './virtual-time.ts';

export interface UserRows {
  readonly user: EndUserKey;
  cycles: Cycle[];
  /** The cycles that were live at `liveAt`, cached so that a load need not scan all ended cycles. */
  live: Cycle[];
  liveAt: Instant;
  holds: readonly Hold[];
  readonly postings: Posting[];
}

export interface Lock {
  readonly names: readonly string[];
  readonly owner: Owner;
  readonly granted: (lock: Lock) => void;
  /** True once COMMIT has been sent: the server commits before it releases the lock, even if the client disconnects. */
  isCommitting: boolean;
}

export class Disk {
  readonly users = new Map<string, UserRows>();
  readonly records = new Map<string, IdempotencyRecord>();
  readonly apiKeys = new Map<string, ApiKey>();
  readonly ids: TransactionIds;
  readonly feed: FeedPosting[] = [];
  consumed = 0;
  readonly totals = new TotalsSum();
  readonly events: StoredEvents;
  readonly wall: () => number;
  #latest: Instant = 0;
  /** No idempotency record is older than this instant, so a sweep need not scan all records every second. */
  #recordedFrom: Instant = 0;
  readonly #held = new Map<string, Lock>();
  #waiting: Lock[] = [];

  constructor(wall: () => number, tails: () => string, areEventsDerived = false) {
    this.wall = wall;
    this.events = new StoredEvents(areEventsDerived);
    this.ids = new TransactionIds({ at: 0, sequence: 0 }, tails);
  }

  get latest(): Instant {
    return this.#latest;
  }

  tick(): Instant {
    this.#latest = this.peek();
    return this.#latest;
  }

  peek(): Instant {
    return Math.min(Math.max(this.#latest, Math.floor(this.wall())), LAST_INSTANT);
  }

  load(user: EndUserKey, now: Instant, { allHolds = true } = {}): EndUserState {
    const rows = this.users.get(endUserText(user));
    if (rows === undefined) return EMPTY_STATE;
    const known = now < rows.liveAt ? rows.cycles : rows.live;
    const live = known.filter((cycle) => isLive(cycle, now));
    if (live.length < known.length && now >= rows.liveAt) {
      rows.live = live.slice();
      rows.liveAt = now;
    }
    const holds = allHolds ? rows.holds : rows.holds.filter(({ expiresAt }) => expiresAt <= now);
    return { cycles: inSpendingOrder(live), holds };
  }

  postingsOf(user: EndUserKey): readonly Posting[] {
    return this.users.get(endUserText(user))?.postings ?? [];
  }

  commit({ changes, records }: Pick<DecidedBatch, 'changes' | 'records'>): void {
    for (const change of changes) this.#apply(change);
    for (const record of records) {
      this.records.set(nameOf(record), record);
      this.#recordedFrom = Math.min(this.#recordedFrom, record.recordedAt);
    }
  }

  #apply({ user, before, after, postings }: UserChange): void {
    const name = endUserText(user);
    const rows = this.users.get(name) ?? newRows(user);
    this.users.set(name, rows);
    const { opened, changed } = cycleChanges(before, after);
    for (const cycles of [rows.cycles, rows.live]) {
      for (const change of changed) {
        const place = cycles.findLastIndex(({ id }) => id === change.before.id);
        if (place >= 0) cycles[place] = change.after;
      }
      cycles.push(...opened);
    }
    rows.holds = holdsAfter(rows.holds, before, after);
    rows.postings.push(...postings);
    this.feed.push(...postings.map((posting) => ({ user: rows.user, posting })));
  }

  /** Returns at most `postingsMax` postings, plus the rest of the last transaction. */
  nextPart(postingsMax: number, consumed: number): FeedPosting[] {
    const { feed } = this;
    let end = Math.min(consumed + postingsMax, feed.length);
    while (end < feed.length && feed[end]?.posting.transactionId === feed[end - 1]?.posting.transactionId) end += 1;
    return feed.slice(consumed, end);
  }

  saveTotals({ daily, expiries }: Totals, count: number): void {
    for (const total of daily) this.totals.addDaily(total);
    for (const total of expiries) this.totals.addExpiry(total);
    this.consumed += count;
  }

  get hasAllEvents(): boolean {
    const { areDerived, consumed } = this.events;
    return !areDerived || (consumed === this.feed.length && this.events.due(this.peek()).length === 0);
  }

  due(limit: number): EndUserKey[] {
    const now = this.peek();
    const found: { at: Instant; user: EndUserKey }[] = [];
    for (const { user, live: cycles, holds } of this.users.values()) {
      const at = nextEventAt({ cycles, holds });
      if (at <= now) found.push({ at, user });
    }
    found.sort((a, b) => a.at - b.at);
    return found.slice(0, limit).map(({ user }) => user);
  }

  deleteExpiredRecords(now: Instant, retention: IdempotencyRetention, max: number): string[] {
    if (this.#recordedFrom + Math.min(retention.grantsMs, retention.othersMs) >= now) return [];
    const expired: string[] = [];
    let oldest = Number.POSITIVE_INFINITY;
    for (const [name, record] of this.records) {
      if (!hasExpired(record, now, retention)) oldest = Math.min(oldest, record.recordedAt);
      else if (expired.push(name) === max) break;
    }
    for (const name of expired) this.records.delete(name);
    if (expired.length < max) this.#recordedFrom = oldest;
    return expired;
  }

  hasExpiredRecords(retention: IdempotencyRetention): boolean {
    const now = this.peek();
    for (const record of this.records.values()) if (hasExpired(record, now, retention)) return true;
    return false;
  }

  nextEventOf(names: readonly string[]): Instant | null {
    const now = this.peek();
    let next: Instant | null = null;
    for (const name of names) {
      const rows = this.users.get(name);
      const at = rows === undefined ? NEVER : nextEventAt({ cycles: rows.live, holds: rows.holds });
      if (at > now && at !== NEVER && (next === null || at < next)) next = at;
    }
    return next;
  }

  boundariesAfter(now: Instant): Instant[] {
    const instants = new Set<Instant>();
    for (const { cycles, holds } of this.users.values()) {
      for (const { end } of cycles) if (end > now) instants.add(end);
      for (const { expiresAt } of holds) if (expiresAt > now) instants.add(expiresAt);
    }
    return [...instants].sort((a, b) => a - b);
  }

  /**
   * Locks all of `names` together, as soon as every name is free. Requests for the same name are granted in the order
   * in which they were made.
   */
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

  /** A database server releases the locks of a client when it notices that the client has disconnected. */
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
  return { user: { account, endUser }, cycles: [], live: [], liveAt: 0, holds: [], postings: [] };
}

function holdsAfter(holds: readonly Hold[], before: EndUserState, after: EndUserState): readonly Hold[] {
  if (before.holds === after.holds) return holds;
  const loaded = new Set(before.holds.map(({ id }) => id));
  return [...holds.filter(({ id }) => !loaded.has(id)), ...after.holds].sort(lapseOrder);
}

function hasExpired(record: IdempotencyRecord, now: Instant, { grantsMs, othersMs }: IdempotencyRetention): boolean {
  return record.recordedAt < now - (isGrant(record) ? grantsMs : othersMs);
}
