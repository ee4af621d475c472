// Totals of each account's postings. With these totals, the console's overview does not have to read all postings. A
// job computes the totals from the feed.

import type { EndUserKey } from '../ledger/command.ts';
import { DAY_MS, HOUR_MS } from '../ledger/instant.ts';
import { isListed, type Posting, type PostingKind, rolledOverBy } from '../ledger/posting.ts';
import type { FeedPosting } from './feed.ts';

/** The total of all transactions of one kind that one actor made on one day (UTC). */
export interface DailyTotal {
  readonly account: number;
  /** Days since 1970. */
  readonly day: number;
  readonly kind: PostingKind;
  readonly actor: string;
  credits: bigint;
  transactions: number;
}

/** The credits left in all cycles and periods that end in `hour`, except credits that have rolled over. */
export interface ExpiryTotal {
  readonly account: number;
  /** Hours since 1970. */
  readonly hour: number;
  credits: bigint;
}

export interface Totals {
  readonly daily: readonly DailyTotal[];
  readonly expiries: readonly ExpiryTotal[];
}

export function hourOf(instant: number): number {
  return Math.floor(instant / HOUR_MS);
}

export function dayOf(instant: number): number {
  return Math.floor(instant / DAY_MS);
}

export function totalsOfPostings(postings: Iterable<FeedPosting>): Totals {
  const sum = new TotalsSum();
  for (const each of postings) sum.add(each);
  return sum.totals();
}

export class TotalsSum {
  readonly #daily = new Map<string, DailyTotal>();
  readonly #expiries = new Map<string, ExpiryTotal>();
  #previousId: string | null = null;
  #previousUser: EndUserKey | null = null;

  /** Add all postings of one transaction before the postings of the next one. */
  add({ user, posting }: FeedPosting): void {
    const { account } = user;
    const { kind, actor, transactionId } = posting;
    if (!isListed(kind)) return;
    const isFirst = this.#previousId !== transactionId || this.#previousUser?.endUser !== user.endUser;
    this.#previousId = transactionId;
    this.#previousUser = user;
    const { amount, createdAt, expiresAt } = posting;
    const kept = keptBy(posting);
    this.addDaily({
      account,
      day: dayOf(createdAt),
      kind,
      actor,
      credits: BigInt(amount - kept),
      transactions: isFirst ? 1 : 0,
    });
    // Also count postings to ended cycles: a late capture reduces the number of credits that expired with the cycle.
    // Credits that are refunded to an ended period expire at the time of the refund.
    const isExpired = kind === 'refund' && expiresAt <= createdAt;
    this.addExpiry({ account, hour: hourOf(isExpired ? createdAt : expiresAt), credits: BigInt(amount) });
    if (kept > 0) this.addExpiry({ account, hour: hourOf(createdAt), credits: BigInt(-kept) });
  }

  subtract({ daily, expiries }: Totals): void {
    for (const total of daily) this.addDaily({ ...total, credits: -total.credits, transactions: -total.transactions });
    for (const total of expiries) this.addExpiry({ ...total, credits: -total.credits });
  }

  totals(): Totals {
    return { daily: [...this.#daily.values()], expiries: [...this.#expiries.values()] };
  }

  /**
   * Returns one sentence for each stored total that differs from the postings. First call `add` with all postings, and
   * `subtract` with all stored totals.
   */
  faults(): string[] {
    const { daily, expiries } = this.totals();
    const dailyFaults = daily
      .filter(({ credits, transactions }) => credits !== 0n || transactions !== 0)
      .map(
        ({ account, day, kind, actor, credits, transactions }) =>
          `the totals of account ${account} (kind ${kind}, actor ${actor}, day starting at ${utcText(day * DAY_MS)}) do not match the postings: the credits differ by ${credits}, and the number of transactions differs by ${transactions}`,
      );
    const expiryFaults = expiries
      .filter(({ credits }) => credits !== 0n)
      .map(
        ({ account, hour, credits }) =>
          `the totals of account ${account} (cycles that end in the hour starting at ${utcText(hour * HOUR_MS)}) do not match the postings: the credits differ by ${credits}`,
      );
    return [...dailyFaults, ...expiryFaults].map(
      (fault) => `${fault}; run \`scrip migrate --totals\` to rebuild the totals`,
    );
  }

  addDaily(total: DailyTotal): void {
    const key = `${total.account} ${total.day} ${total.kind} ${total.actor}`;
    const known = this.#daily.get(key);
    if (known === undefined) {
      this.#daily.set(key, { ...total });
      return;
    }
    known.credits += total.credits;
    known.transactions += total.transactions;
  }

  addExpiry(total: ExpiryTotal): void {
    const key = `${total.account} ${total.hour}`;
    const known = this.#expiries.get(key);
    if (known === undefined) this.#expiries.set(key, { ...total });
    else known.credits += total.credits;
  }
}

/**
 * How many of the credits of a posting come from a period that has ended, and would have expired at the instant of the
 * posting: credits that roll over, and credits that a refund returns in a new cycle.
 */
function keptBy(posting: Posting): number {
  const isReturned = posting.kind === 'refund' && posting.terms !== null;
  return isReturned ? posting.amount : rolledOverBy(posting);
}

/** Returns an instant as text. If a stored total was changed by hand, its instant can be out of range. */
function utcText(instant: number): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime()) ? `${instant} ms since 1970` : date.toISOString();
}
