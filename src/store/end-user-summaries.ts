// Summaries: one row per end user for the console's lists, so that a page of a list can be read from an index. Writes
// do not update the summaries. The derivation of events does, because it processes everything that can change a
// balance: postings and the expiry of credits.

import type { Amount } from '../ledger/amount.ts';
import { cyclesAt } from '../ledger/balance.ts';
import { type Cycle, renews, spendable } from '../ledger/cycle.ts';
import { INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import { NEVER, nextEventAt } from '../ledger/next-event.ts';
import type { EndUserState } from '../ledger/state.ts';
import { stateOfText, stateText } from './state-text.ts';

export interface Summary {
  readonly balance: Amount;
  /** The next instant at which credits expire and are not renewed; null if there is none. */
  readonly expiresAt: Instant | null;
}

export interface EndUserCounts {
  readonly endUsers: number;
  readonly withCredits: number;
}

export interface AccountCounts extends EndUserCounts {
  readonly account: number;
}

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
 * The columns that `isSummaryRight` checks. `state` is the state at `derived_to`, in the text format of snapshots.
 * `due_at` is the instant at which the passage of time next causes an event; null if a renewal, a change of plan or a
 * lapse comes first.
 */
export const AUDITED_COLUMNS = 'balance, expires_at, latest_activity, derived_to, state, due_at';

/**
 * Whether a stored summary matches the current state of an end user. Call this function only for a summary that
 * includes all postings of the end user.
 *
 * Compares the two states at `now`, not at `derivedTo`. If a hold lapsed before a cycle ended, but the lapse was stored
 * only afterwards, the cycle in `current` still shows the credits as held. The balance of `current` would therefore be
 * too low at an instant before the cycle ended.
 *
 * @param row the `AUDITED_COLUMNS`; empty if there is no summary
 * @param latest the instant of the end user's latest posting, and the state after that posting
 * @param now the latest instant of the ledger
 * @throws SyntaxError if the stored state cannot be parsed
 */
export function isSummaryRight(
  [storedBalance, storedExpiry, activity, derived, text, due]: readonly unknown[],
  latest: { readonly at: Instant; readonly state: EndUserState },
  now: Instant,
): boolean {
  const derivedTo = Number(derived);
  if (Number(activity) !== latest.at || !(derivedTo >= latest.at)) return false;
  const state = stateOfText(text as string);
  const at = Math.max(now, derivedTo);
  const { balance, expiresAt } = summaryOf(state, derivedTo);
  const isSame = Number(storedBalance) === balance && instantOf(storedExpiry) === expiresAt;
  return isSame && isDueInTime(instantOf(due), expiresAt, state) && textAt(state, at) === textAt(latest.state, at);
}

function instantOf(column: unknown): Instant | null {
  return column === null ? null : Number(column);
}

/** Whether `dueAt` is no later than the next expiry, so that no expiry is missed. */
function isDueInTime(dueAt: Instant | null, expiresAt: Instant | null, state: EndUserState): boolean {
  return expiresAt === null || expiresAt >= nextEventAt(state) || (dueAt ?? NEVER) <= expiresAt;
}

/** The state at `at` as text, with the events that are due by then. */
function textAt(state: EndUserState, at: Instant): string {
  return stateText({ cycles: cyclesAt(state, at), holds: state.holds.filter(({ expiresAt }) => expiresAt > at) }, at);
}

function expires(cycle: Cycle): boolean {
  return spendable(cycle) > 0 && !renews(cycle) && cycle.end < INSTANT_MAX;
}

export const REBUILD_COUNTS = 'run `scrip migrate --totals` to rebuild the counts';

export function summaryFault(account: number, what: string): string {
  return `the summaries of account ${account} are wrong: ${what}`;
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
  *all(): Generator<AccountCounts> {
    for (const [account, change] of this.#changes)
      if (change.endUsers !== 0 || change.withCredits !== 0) yield { account, ...change };
  }
}
