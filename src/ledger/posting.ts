// A posting: the part of a transaction that touches one cycle. Postings are never changed or deleted. The cycles, holds
// and balances of a ledger are computed from its postings (`apply.ts`).

import type { Cycle, CycleType } from './cycle.ts';
import type { Instant } from './instant.ts';
import { type Plan, planOfText, planText } from './plan.ts';
import type { TransactionId } from './transaction-id.ts';

/**
 * Postings of the kinds `schedule-plan`, `stop-cycle`, `hold`, `release` and `lapse` neither grant nor spend credits.
 * The API lists transactions of these kinds only if a request filters by kind. `renew`, `change-plan` and `lapse` are
 * automatic events, which only the passage of time causes. `change-plan` starts a scheduled plan. The OpenAPI document
 * lists the kinds in this order.
 */
export const POSTING_KINDS = [
  'add',
  'subtract',
  'refund',
  'start-cycle',
  'renew',
  'schedule-plan',
  'change-plan',
  'stop-cycle',
  'hold',
  'capture',
  'release',
  'lapse',
] as const;
export type PostingKind = (typeof POSTING_KINDS)[number];

/**
 * What caused a transaction: `key:<id>` for an API key, `user:<id>` for a console user, `import:<id>` for an import;
 * `renewal`, `change` or `lapse` for an automatic event.
 */
export type Actor = string;

/** Text that explains a write: 1 to `NOTE_LENGTH_MAX` characters. */
export type Note = string;

/** Counted in code points, as databases count characters. */
export const NOTE_LENGTH_MAX = 500;

export const RENEWAL_ACTOR: Actor = 'renewal';
export const CHANGE_ACTOR: Actor = 'change';
export const LAPSE_ACTOR: Actor = 'lapse';

/**
 * The type and plan of the cycle or period that a posting opens or schedules. The other properties of the cycle are
 * computed from the other fields of the posting.
 */
export interface CycleTerms {
  readonly type: CycleType;
  readonly plan: Plan;
}

export interface Posting {
  readonly transactionId: TransactionId;
  readonly cycleId: TransactionId;
  readonly period: number;
  readonly kind: PostingKind;
  /** Positive if credits are granted or refunded, negative if they are spent. */
  readonly amount: number;
  /** The change in held credits: positive if credits are held, negative if a hold is closed. */
  readonly held: number;
  readonly createdAt: Instant;
  /**
   * The end of the period. When the period has ended, `amount` affects the balance only through credits that roll over.
   * A posting that closes a hold or refunds credits can be created after the period has ended.
   */
  readonly expiresAt: Instant;
  readonly actor: Actor;
  /** Null if the request had no note, and for automatic events. */
  readonly note: Note | null;
  /** Null unless the posting opens a cycle or a period, or schedules a plan. */
  readonly terms: CycleTerms | null;
  /**
   * The ID of the closed hold, of the refunded transaction, or of the transaction that scheduled the plan; otherwise
   * null.
   */
  readonly reference: TransactionId | null;
  /** The instant at which the hold lapses, if the posting creates a hold; otherwise null. */
  readonly holdExpiresAt: Instant | null;
}

/**
 * Whether a string is a valid note. PostgreSQL cannot store U+0000, and UTF-8 cannot encode an unpaired surrogate.
 */
export function isNote(note: string): boolean {
  // A string has at most two UTF-16 code units for each code point.
  if (note.length === 0 || note.length > 2 * NOTE_LENGTH_MAX) return false;
  if (note.includes('\0') || !note.isWellFormed()) return false;
  return note.length <= NOTE_LENGTH_MAX || [...note].length <= NOTE_LENGTH_MAX;
}

/** The fields that the postings of one transaction have in common. */
export interface Entry extends Pick<Posting, 'transactionId' | 'kind' | 'createdAt' | 'actor' | 'note'> {
  readonly reference?: TransactionId | null;
  readonly holdExpiresAt?: Instant | null;
}

export type PeriodKey = Pick<Posting, 'cycleId' | 'period' | 'expiresAt'>;

/** Identifies a period among all periods of an end user. */
export function periodName({ cycleId, period }: Pick<PeriodKey, 'cycleId' | 'period'>): string {
  return `${cycleId}/${period}`;
}

/** The `periodName` of the current period of a cycle. */
export function currentPeriodName({ id, period }: Pick<Cycle, 'id' | 'period'>): string {
  return periodName({ cycleId: id, period });
}

/** A posting that changes `cycle` by `amount`. */
export function postingTo(cycle: Cycle, amount: number, entry: Entry): Posting {
  return postingOn({ cycleId: cycle.id, period: cycle.period, expiresAt: cycle.end }, { amount, held: 0 }, entry);
}

/** A posting that changes the credits and the held credits of a period, even if the period has ended. */
export function postingOn(
  { cycleId, period, expiresAt }: PeriodKey,
  { amount, held }: Pick<Posting, 'amount' | 'held'>,
  { transactionId, kind, createdAt, actor, note, reference = null, holdExpiresAt = null }: Entry,
): Posting {
  return {
    transactionId,
    cycleId,
    period,
    kind,
    amount,
    held,
    createdAt,
    expiresAt,
    actor,
    note,
    terms: null,
    reference,
    holdExpiresAt,
  };
}

/** The posting that opens `cycle` or its current period. */
export function openingOf(cycle: Cycle, entry: Omit<Entry, 'createdAt'>): Posting {
  const { type, plan } = cycle;
  return { ...postingTo(cycle, cycle.amount, { ...entry, createdAt: cycle.start }), terms: { type, plan } };
}

/** The text form of a cycle's terms in both stores and in the hash chain, such as `recurring/100/31d`. */
export function termsText({ type, plan }: CycleTerms): string {
  return `${type}/${planText(plan)}`;
}

/** The inverse of `termsText`. */
export function termsOfText(text: string): CycleTerms {
  const slash = text.indexOf('/');
  return { type: text.slice(0, slash) as CycleType, plan: planOfText(text.slice(slash + 1)) };
}

/** Whether a posting opens a cycle or a period. */
export function isOpening({ terms, kind }: Pick<Posting, 'terms' | 'kind'>): boolean {
  return terms !== null && kind !== 'schedule-plan';
}

/** Whether the API lists transactions of this kind by default. */
export function isListed(kind: PostingKind): boolean {
  return !UNLISTED.has(kind);
}

/** Whether postings of this kind are caused by time rather than by a request. */
export function isByTime(kind: PostingKind): boolean {
  return kind === 'renew' || kind === 'change-plan' || kind === 'lapse';
}

const UNLISTED: ReadonlySet<PostingKind> = new Set(['schedule-plan', 'stop-cycle', 'hold', 'release', 'lapse']);

/** The combined effect of the postings of one request or automatic event. */
export interface Transaction {
  readonly id: TransactionId;
  readonly kind: PostingKind;
  readonly amount: number;
  readonly createdAt: Instant;
  /** The latest end among the cycles whose credits changed; if no credits changed, the end of the first cycle. */
  readonly expiresAt: Instant;
  readonly actor: Actor;
  readonly note: Note | null;
}

export type ListedPosting = Pick<
  Posting,
  'transactionId' | 'kind' | 'amount' | 'createdAt' | 'expiresAt' | 'actor' | 'note'
>;

export function transactionOf(postings: readonly [ListedPosting, ...ListedPosting[]]): Transaction {
  let amount = 0;
  let expiresAt = 0;
  for (const posting of postings) {
    amount += movedBy(posting);
    if (posting.amount !== 0) expiresAt = Math.max(expiresAt, posting.expiresAt);
  }
  const { transactionId: id, kind, createdAt, actor, note, expiresAt: end } = postings[0];
  return { id, kind, amount, createdAt, expiresAt: expiresAt || end, actor, note };
}

/**
 * The amount that a posting contributes to its transaction. A refund to an ended cycle contributes 0, because the
 * refunded credits have expired.
 */
export function movedBy({ kind, amount, createdAt, expiresAt }: ListedPosting): number {
  return kind === 'refund' && expiresAt <= createdAt ? 0 : amount;
}

/** How many of the credits of a renewal rolled over from the previous period; 0 for all other postings. */
export function rolledOverBy({ kind, amount, terms }: Pick<Posting, 'kind' | 'amount' | 'terms'>): number {
  return kind === 'renew' && terms !== null ? amount - terms.plan.amount : 0;
}
