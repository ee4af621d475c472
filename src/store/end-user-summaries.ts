// Summaries: one row per end user for the lists, so that a page of a list can be read from an index. They are updated
// from the feed, not within a write.
//
// Renewals and lapses are postings, so the feed reports them; credits expire without a posting, so the end user is
// summarized again at `expiresAt`.

import type { Amount } from '../ledger/amount.ts';
import { cyclesAt } from '../ledger/balance.ts';
import { type Cycle, renews, spendable } from '../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import { dueRenewals } from '../ledger/settle.ts';
import type { EndUserState } from '../ledger/state.ts';

export interface Summary {
  readonly balance: Amount;
  /** The next instant at which credits expire and will not renew; null if there is none. */
  readonly expiresAt: Instant | null;
}

export interface EndUserCounts {
  readonly endUsers: number;
  readonly withCredits: number;
}

export interface SummaryKeeper {
  /**
   * Summarizes some end users with new postings or expired credits.
   *
   * @returns whether there may be more such end users
   * @throws StoreFault
   */
  catchUp(): Promise<boolean>;
}

/** The maximum number of end users that one step summarizes, which takes a few milliseconds. */
export const SUMMARIZED_MAX = 64;

export function summaryOf(state: EndUserState, now: Instant): Summary {
  let balance = 0;
  let expiresAt: Instant | null = null;
  for (const cycle of cyclesAt(state, now)) {
    balance += spendable(cycle);
    if (expires(cycle) && cycle.end < (expiresAt ?? INSTANT_MAX)) expiresAt = cycle.end;
  }
  return { balance, expiresAt };
}

/**
 * Whether `stored` was the correct summary at some instant from `since` to `now`. The stored summary may lack the
 * expiries, renewals and lapses after that instant.
 *
 * @param state the state after the latest posting
 */
export function wasSummaryOf(
  stored: Summary,
  state: EndUserState,
  { since, now }: { readonly since: Instant; readonly now: Instant },
): boolean {
  const hasEndedBefore = (end: Instant) => end > since && end <= now && end < (stored.expiresAt ?? INSTANT_MAX);
  const ends = state.cycles
    .filter(expires)
    .map(({ end }) => end)
    .filter(hasEndedBefore);
  const first = ends.reduce((latest, end) => Math.max(latest, end), since);
  const isRightAt = (at: Instant) => {
    const { balance, expiresAt } = summaryOf(state, at);
    return balance === stored.balance && expiresAt === stored.expiresAt;
  };
  if (isRightAt(first)) return true;
  const isLater = (at: Instant) => at > first && hasEndedBefore(at);
  if (state.holds.some(({ expiresAt: at }) => isLater(at) && isRightAt(at))) return true;
  // Each renewal can change the balance, because of the credits that roll over. The latest renewals are checked first.
  return Iterator.from(dueRenewals(state, now)).some(({ createdAt: at }) => isLater(at) && isRightAt(at));
}

function expires(cycle: Cycle): boolean {
  return cycle.remaining > 0 && !renews(cycle) && cycle.end < INSTANT_MAX;
}

export function summaryFault(account: number, what: string): string {
  return `the summaries of account ${account} are wrong: ${what}; \`scrip migrate --totals\` rebuilds them`;
}

export class CountChanges {
  readonly #changes = new Map<number, { endUsers: number; withCredits: number }>();

  /** @param before the stored balance; null for a new end user */
  add(account: number, before: Amount | null, after: Amount): void {
    const change = this.#changes.get(account) ?? { endUsers: 0, withCredits: 0 };
    if (before === null) change.endUsers += 1;
    change.withCredits += Number(after > 0) - Number((before ?? 0) > 0);
    this.#changes.set(account, change);
  }

  /** Yields the accounts whose counts have changed, with the differences. */
  *all(): Generator<EndUserCounts & { readonly account: number }> {
    for (const [account, change] of this.#changes)
      if (change.endUsers !== 0 || change.withCredits !== 0) yield { account, ...change };
  }
}
