// Movements: what the postings of a batch add up to, in a few entries an account, so that an account's totals can be
// read without its postings. They are derived: `scrip verify` adds them up again.
//
//   held       by the hour in which cycles end: the credits in them, and the end users whose last credits end then
//   add, …     by the day on which it happened, a series for each kind: the credits moved, and the transactions
//
// Credits that nobody spends leave by themselves: what is still held in an hour that is over has expired. A stop moves
// nothing.

import type { Cycle } from './cycle.ts';
import type { UserChange } from './fold.ts';
import { DAY_MS, HOUR_MS, type Instant } from './instant.ts';
import type { Posting, PostingKind } from './posting.ts';

/** Stored as these numbers: they never change. */
export const SERIES = { held: 0, add: 1, 'start-cycle': 2, renew: 3, subtract: 4 } as const;
const SERIES_COUNT = 5;

export type Series = (typeof SERIES)[keyof typeof SERIES];

/** Hours since 1970, or days, by the series. */
export type Slot = number;

export interface Movement {
  readonly account: number;
  readonly series: Series;
  readonly slot: Slot;
  /** What it adds to the credits, as a sum of two, so that not every posting needs a bigint: see `creditsOf`. */
  readonly credits: number;
  readonly moreCredits: bigint;
  /** What it adds to the end users of an hour, or to the transactions of a day. */
  readonly count: number;
}

export function creditsOf({ credits, moreCredits }: Movement): bigint {
  return moreCredits + BigInt(credits);
}

export function hourOf(instant: Instant): Slot {
  return Math.floor(instant / HOUR_MS);
}

export function dayOf(instant: Instant): Slot {
  return Math.floor(instant / DAY_MS);
}

/**
 * The instant behind which a cycle has to end to be loaded for a batch at `now`: who had credits when the hour of `now`
 * began counts until it is over.
 */
export function loadedBehind(now: Instant): Instant {
  return hourOf(now) * HOUR_MS - 1;
}

/**
 * @param changes of a batch, for which all cycles were loaded that end after what `loadedBehind` says of its instant
 * @returns one for each account, series and slot that changes
 */
export function movementsOf(changes: readonly UserChange[]): Movement[] {
  const sums = new MovementSums();
  for (const { user, postings, cycles, opened, changed } of changes) {
    const byKey = sums.of(user.account);
    postings.forEach((posting, index) => {
      if (posting.kind !== 'stop-cycle') enter(byKey, posting, postings[index - 1]);
    });
    // Cycles keep their ends.
    const isUsedUp = changed.some(({ before, after }) => before.remaining > 0 !== after.remaining > 0);
    if (opened.length === 0 && !isUsedUp) continue;
    const { before, after } = lastHours(cycles);
    if (before === after) continue;
    if (before !== null) sumOf(byKey, SERIES.held, before).count -= 1;
    if (after !== null) sumOf(byKey, SERIES.held, after).count += 1;
  }
  return sums.movements();
}

/** Before the first instant. */
const NEVER = -1;

/**
 * The hour in which the last credits of an end user end, before and after; null when there are none. Cycles that are the
 * same are looked at once: of a thousand, a subtraction changes one.
 */
function lastHours({ before, after }: UserChange['cycles']): { before: Slot | null; after: Slot | null } {
  let [same, earlier, later] = [NEVER, NEVER, NEVER];
  for (let place = 0; place < after.length; place++) {
    const now = after[place] as Cycle;
    const then = before[place];
    if (now === then) {
      if (now.remaining > 0 && now.end > same) same = now.end;
      continue;
    }
    if (now.remaining > 0) later = Math.max(later, now.end);
    if (then !== undefined && then.remaining > 0) earlier = Math.max(earlier, then.end);
  }
  const hour = (last: Instant) => (last === NEVER ? null : hourOf(last));
  return { before: hour(Math.max(same, earlier)), after: hour(Math.max(same, later)) };
}

interface Sum {
  readonly series: Series;
  readonly slot: Slot;
  credits: number;
  moreCredits: bigint;
  count: number;
}

type SumsByKey = Map<number, Sum>;

/** Adds up movements of the same account, series and slot. */
export class MovementSums {
  readonly #byAccount = new Map<number, SumsByKey>();

  of(account: number): SumsByKey {
    const known = this.#byAccount.get(account);
    if (known !== undefined) return known;
    const byKey: SumsByKey = new Map();
    this.#byAccount.set(account, byKey);
    return byKey;
  }

  add({ account, series, slot, credits, moreCredits, count }: Movement): void {
    const sum = sumOf(this.of(account), series, slot);
    move(sum, credits);
    sum.moreCredits += moreCredits;
    sum.count += count;
  }

  /** Those that do not come to nothing. */
  movements(): Movement[] {
    const movements: Movement[] = [];
    for (const [account, byKey] of this.#byAccount) {
      for (const { series, slot, credits, moreCredits, count } of byKey.values()) {
        if (credits !== 0 || moreCredits !== 0n || count !== 0)
          movements.push({ account, series, slot, credits, moreCredits, count });
      }
    }
    return movements;
  }

  clear(): void {
    this.#byAccount.clear();
  }
}

/** @param before the posting that was entered before it, which may be of the same transaction */
function enter(byKey: SumsByKey, posting: Posting, before: Posting | undefined): void {
  const { kind, amount, createdAt, expiresAt, transactionId } = posting;
  move(sumOf(byKey, SERIES.held, hourOf(expiresAt)), amount);
  const flow = sumOf(byKey, seriesOf(kind), dayOf(createdAt));
  move(flow, amount);
  if (before?.transactionId !== transactionId) flow.count += 1;
}

function seriesOf(kind: PostingKind): Series {
  return SERIES[kind as Exclude<PostingKind, 'stop-cycle'>];
}

function sumOf(byKey: SumsByKey, series: Series, slot: Slot): Sum {
  const key = slot * SERIES_COUNT + series;
  const known = byKey.get(key);
  if (known !== undefined) return known;
  const sum: Sum = { series, slot, credits: 0, moreCredits: 0n, count: 0 };
  byKey.set(key, sum);
  return sum;
}

/** The credits of many end users together may pass 2^53−1. */
function move(sum: Sum, amount: number): void {
  const credits = sum.credits + amount;
  if (Number.isSafeInteger(credits)) {
    sum.credits = credits;
    return;
  }
  sum.moreCredits += BigInt(sum.credits);
  sum.credits = amount;
}
