// The event log of a simulation. If a process crashes during a step, either all or none of the step's results are
// stored.

import { type EndUserKey, endUserText } from '../../src/ledger/command.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import type { Derivation, DeriveEvents, EventLog, EventSettings, LedgerEvent } from '../../src/store/event-log.ts';
import type { FeedPosting } from '../../src/store/feed.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import type { Disk, Lock } from './disk.ts';
import type { Fault } from './faults.ts';
import type { StoreOptions } from './simulated-store.ts';
import type { Owner } from './virtual-time.ts';

/**
 * Only one in this many seeds derives events, because deriving them takes a third of a seed's CPU time. If the event
 * log is broken on purpose, all seeds derive events.
 */
export const EVENTS_EVERY_SEEDS = 7;
const PART_MAX = 100;
const DUE_MAX = 5;

const SETTINGS: readonly EventSettings[] = [
  { expiringDays: 7, thresholds: [{ credits: 50 }, { percent: 20 }] },
  { expiringDays: 1, thresholds: [{ percent: 100 }, { credits: 5 }, { percent: 50 }] },
];

export function eventSettingsOf({ account }: EndUserKey): EventSettings {
  return SETTINGS[account % SETTINGS.length] as EventSettings;
}

export interface Derived extends Pick<Derivation, 'next' | 'dueAt'> {
  readonly user: EndUserKey;
  readonly events: readonly LedgerEvent[];
}

type NewlyDerived = readonly (readonly [EndUserKey, Derivation])[];

export class StoredEvents {
  readonly areDerived: boolean;
  readonly users = new Map<string, Derived>();
  /** The number of postings whose events are stored. */
  consumed = 0;

  constructor(areDerived: boolean) {
    this.areDerived = areDerived;
  }

  save(derived: NewlyDerived): void {
    for (const [user, { events, next, dueAt }] of derived) {
      const name = endUserText(user);
      const earlier = this.users.get(name)?.events ?? [];
      this.users.set(name, { user, events: events.length === 0 ? earlier : [...earlier, ...events], next, dueAt });
    }
  }

  due(now: Instant): readonly EndUserKey[] {
    const due: EndUserKey[] = [];
    for (const { user, dueAt } of this.users.values())
      if (dueAt !== null && dueAt <= now && due.push(user) === DUE_MAX) break;
    return due;
  }
}

export class SimulatedEvents implements Pick<EventLog, 'deriveNext'> {
  protected readonly disk: Disk;
  protected readonly owner: Owner;
  readonly #options: StoreOptions;

  constructor(disk: Disk, owner: Owner, options: StoreOptions) {
    this.disk = disk;
    this.owner = owner;
    this.#options = options;
  }

  async deriveNext(derive: DeriveEvents): Promise<boolean> {
    await this.pause(0.3);
    this.#mayFail('the feed cannot be read', 'StoreUnavailable');
    const consumer = await this.disk.lock(['consumer events'], this.owner);
    try {
      const { events } = this.disk;
      const due = events.due(this.disk.peek());
      if (due.length === 0 && events.consumed === this.disk.feed.length) return false;
      // While the rows of the due end users are locked, no postings of these end users can be committed.
      const rows = await this.lockRows(due.map(endUserText));
      try {
        return await this.#step(derive, due);
      } finally {
        this.disk.unlock(rows);
      }
    } finally {
      this.disk.unlock(consumer);
    }
  }

  async #step(derive: DeriveEvents, due: readonly EndUserKey[]): Promise<boolean> {
    const { disk } = this;
    const now = disk.tick();
    const part = disk.nextPart(PART_MAX, disk.events.consumed);
    const isMore = part.length >= PART_MAX;
    const postings = byEndUser(part);
    const isDue = new Set(isMore ? [] : due.map(endUserText));
    for (const user of isMore ? [] : due)
      if (!postings.has(endUserText(user))) postings.set(endUserText(user), [user, []]);
    const derived = [...postings].map(([name, [user, postings]]) => {
      const from = disk.events.users.get(name)?.next ?? null;
      const until = isDue.has(name) ? now : null;
      return [user, derive({ user, from, postings, until, settings: eventSettingsOf(user) })] as const;
    });
    await this.pause(0.5);
    this.#mayFail('the position in the feed cannot be saved', 'StoreUnavailable');
    await this.save(derived, part.length);
    this.#mayFail('a commit fails but is stored', 'OutcomeUnknown');
    return isMore || due.length > 0;
  }

  protected lockRows(names: readonly string[]): Promise<Lock> {
    return this.disk.lock(names, this.owner);
  }

  protected async save(derived: NewlyDerived, count: number): Promise<void> {
    this.disk.events.save(derived);
    this.disk.events.consumed += count;
  }

  protected pause(meanMs: number): Promise<void> {
    const { time, chance } = this.#options;
    return new Promise((resolve) => time.after(chance.delay(meanMs), resolve, this.owner));
  }

  #mayFail(fault: Fault, code: StoreFault['code']): void {
    if (this.#options.faults.strikes(fault)) throw new StoreFault(code, 'simulated');
  }
}

function byEndUser(part: readonly FeedPosting[]): Map<string, [EndUserKey, Posting[]]> {
  const users = new Map<string, [EndUserKey, Posting[]]>();
  for (const { user, posting } of part) {
    const name = endUserText(user);
    const known = users.get(name);
    if (known === undefined) users.set(name, [user, [posting]]);
    else known[1].push(posting);
  }
  return users;
}

export class StoresEventsLast extends SimulatedEvents {
  protected override async save(derived: NewlyDerived, count: number): Promise<void> {
    await super.save(
      derived.map(([user, derivation]) => [user, { ...derivation, events: [] }]),
      count,
    );
    await this.pause(20);
    this.disk.events.save(derived);
  }
}

/**
 * Derives time-driven events without waiting for the writes in flight, which may be stored with an earlier instant than
 * the events.
 */
export class LetsTimePassTooEarly extends SimulatedEvents {
  protected override async lockRows(): Promise<Lock> {
    return { names: [], owner: this.owner, granted: () => {}, isCommitting: false };
  }
}
