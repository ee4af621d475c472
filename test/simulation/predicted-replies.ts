// The documented response bodies, computed from the reference model, without using the service's code.

import type { Happened } from '../model/model-end-user.ts';
import type {
  ModelAccepted,
  ModelBalance,
  ModelCycle,
  ModelHistoryEntry,
  ModelHoldResult,
  ModelPreview,
  ModelRefused,
  ModelUser,
} from '../model/model-types.ts';
import type { Operation } from './operation.ts';

export function bodyOfSuccess({ user, command }: Operation, accepted: ModelAccepted): string {
  const { transactionId, cycle, hold, refund } = accepted;
  const begin = `{"end_user_id":"${user.endUser}"`;
  if (cycle !== undefined) return JSON.stringify(cycleObject(user, cycle));
  if (hold !== undefined) return `${begin},${holdMembers(transactionId, hold)}}`;
  if (refund !== undefined)
    return `${begin},"transaction_id":"${transactionId}","amount":${refund.restored},"expired":${refund.expired}}`;
  const amount = command !== null && 'amount' in command ? command.amount : null;
  return `${begin},"amount":${amount}}`;
}

function holdMembers(transactionId: string | null, hold: ModelHoldResult): string {
  const { id, status, amount, captured, returned, expired } = hold;
  const end = `"returned":${returned},"expired":${expired},"status":"${status}"`;
  switch (status) {
    case 'open':
      return openMembers(hold);
    case 'captured':
      return `"hold_id":"${id}","transaction_id":"${transactionId}","amount":${captured},${end}`;
    case 'released':
      return `"hold_id":"${id}","amount":${amount},${end}`;
  }
}

function openMembers({ id, amount, createdAt, expiresAt }: ModelBalance['holds'][number]): string {
  return `"hold_id":"${id}","amount":${amount},"created_at":"${timestamp(createdAt)}","expires_at":"${timestamp(expiresAt)}","status":"open"`;
}

export function problemOf(
  user: ModelUser,
  outcome: ModelRefused | { readonly refused: 'IdempotencyKeyReused' },
): Record<string, unknown> {
  const { refused: error } = outcome;
  const status = STATUSES[error];
  switch (outcome.refused) {
    case 'InsufficientFunds': {
      const { requested, available } = outcome;
      return { status, error, requested, available, shortfall: requested - available };
    }
    case 'BalanceTooLarge': {
      const { requested, available } = outcome;
      return { status, error, requested, available };
    }
    case 'CycleAlreadyActive':
      return { status, error, cycle: cycleObject(user, outcome.cycle) };
    case 'RefundTooLarge': {
      const { requested, refundable } = outcome;
      return { status, error, refundable, ...(requested === null ? {} : { requested }) };
    }
    default:
      return { status, error };
  }
}

const STATUSES = {
  InsufficientFunds: 402,
  BalanceTooLarge: 422,
  CycleAlreadyActive: 409,
  CycleNotFound: 404,
  HoldNotFound: 404,
  TooManyHolds: 409,
  TransactionNotFound: 404,
  NotRefundable: 409,
  RefundTooLarge: 409,
  IdempotencyKeyReused: 422,
} as const;

export function balanceText(user: ModelUser, { balance, held, entries }: ModelBalance): string {
  return `{"end_user_id":"${user.endUser}","active_balance_by_cycle":[${entries.map(entryText).join(',')}],${balanceMembers(balance, held)}}`;
}

function entryText(cycle: ModelCycle): string {
  const { start, end, spendable, amount, status, type } = cycle;
  const more = JSON.stringify(planMembers(cycle)).slice(1, -1);
  return `{"cycle_start":"${timestamp(start)}","cycle_end":"${timestamp(end)}","amount":${spendable},"starting_amount":${amount},"status":"${status}","cycle_type":"${type}"${more && `,${more}`}}`;
}

function planMembers({ validityMonths, rolloverMax, next }: ModelCycle) {
  return {
    ...(validityMonths !== null && { validity_months: validityMonths }),
    ...(rolloverMax > 0 && { rollover_max: rolloverMax }),
    ...(next !== null && { next_cycle: nextCycle(next) }),
  };
}

function nextCycle({ startsAt, amount, validityDays, validityMonths, rolloverMax }: NonNullable<ModelCycle['next']>) {
  return {
    starts_at: timestamp(startsAt),
    amount,
    ...(validityMonths === null ? { validity_days: validityDays } : { validity_months: validityMonths }),
    ...(rolloverMax > 0 && { rollover_max: rolloverMax }),
  };
}

export function previewText(user: ModelUser, preview: ModelPreview): string {
  const { startsAt, entries, balance, balanceAtStart, expiring } = preview;
  const credits = `"active_balance":${balance},"active_balance_at_start":${balanceAtStart},"expiring":${expiring}`;
  const cycles = entries.map(entryText).join(',');
  return `{"end_user_id":"${user.endUser}","starts_at":"${timestamp(startsAt)}",${credits},"active_balance_by_cycle":[${cycles}]}`;
}

function balanceMembers(balance: number, held: number): string {
  return held === 0 ? `"active_balance":${balance}` : `"active_balance":${balance},"held":${held}`;
}

export function holdsText(user: ModelUser, { holds }: ModelBalance): string {
  return `{"end_user_id":"${user.endUser}","holds":[${holds.map((hold) => `{${openMembers(hold)}}`).join(',')}]}`;
}

export function balanceHistoryText(
  user: ModelUser,
  instants: readonly number[],
  balances: readonly ModelBalance[],
): string {
  const points = balances.map(
    ({ balance, held }, index) => `{"at":"${timestamp(instants[index] as number)}",${balanceMembers(balance, held)}}`,
  );
  return `{"end_user_id":"${user.endUser}","points":[${points.join(',')}]}`;
}

export type KnownTexts = Map<Happened, string>;

export function transactionTexts(transactions: readonly Happened[], known: KnownTexts): string[] {
  return transactions.map((transaction) => {
    const text = known.get(transaction) ?? `{${transactionMembers(transaction)}}`;
    known.set(transaction, text);
    return text;
  });
}

function transactionMembers({ id, kind, amount, createdAt, expiresAt }: Happened): string {
  const shownId = kind === 'stop-cycle' ? '…' : id;
  const end = expiresAt === null ? '…' : timestamp(expiresAt);
  return `"transaction_id":"${shownId}","amount":${amount},"created_at":"${timestamp(createdAt)}","expire_at":"${end}"`;
}

export function listText(user: ModelUser, transactions: readonly string[]): string {
  return `{"end_user_id":"${user.endUser}","transactions":[${transactions.join(',')}]}`;
}

export interface DetailsFilter {
  readonly limit: number;
  readonly kind: string | null;
  readonly notePrefix: string | null;
}

export function pageText(
  user: ModelUser,
  history: readonly ModelHistoryEntry[],
  { limit, kind, notePrefix }: DetailsFilter,
): string {
  const listed = history.filter((entry) => {
    if (notePrefix !== null && entry.note?.startsWith(notePrefix) !== true) return false;
    if (kind !== null) return entry.kind === kind;
    return entry.expiresAt !== null && entry.amount !== 0;
  });
  const texts = listed.slice(0, limit).map(detailsText);
  const cursor = listed.length > limit ? '"…"' : null;
  return `${listText(user, texts).slice(0, -1)},"next_cursor":${cursor}}`;
}

function detailsText(entry: ModelHistoryEntry): string {
  const { kind, note, actor, reference, refundable, touched } = entry;
  const held = touched.reduce((sum, each) => sum + each.held, 0);
  const cycles = touched.map(
    (each) => `{"cycle_id":"${each.cycle}","period":${each.period},"amount":${each.amount}${heldMember(each.held)}}`,
  );
  return (
    `{${transactionMembers(entry)},"kind":"${kind}","note":${JSON.stringify(note)},"actor":"${actor}"` +
    (reference === null ? '' : `,"reference":"${reference}"`) +
    (refundable === null ? '' : `,"refundable":${refundable}`) +
    `${heldMember(held)},"cycles":[${cycles.join(',')}]}`
  );
}

function heldMember(held: number): string {
  return held === 0 ? '' : `,"held":${held}`;
}

export function comparablePage(text: string): string {
  return text
    .replace(/"next_cursor":"[^"]*"/, '"next_cursor":"…"')
    .replaceAll(/,"cycle_type":"[a-z-]+","starting_amount":\d+,"cycle_start":"[^"]+","cycle_end":"[^"]+"/g, '')
    .replaceAll(
      /("transaction_id":"[^"]*","amount":)0(,"created_at":"[^"]*","expire_at":)"[^"]*"(,"kind":"(?!refund)[a-z-]+")/g,
      '$10$2"…"$3',
    )
    .replaceAll(/"transaction_id":"[^"]*"([^{}]*"kind":"stop-cycle")/g, '"transaction_id":"…"$1');
}

/** A refund may change `refundable` between the reads of two pages. */
export function withoutRefundable(text: string): string {
  return text.replaceAll(/,"refundable":\d+/g, '');
}

function cycleObject(user: ModelUser, cycle: ModelCycle) {
  const { amount, createdAt, start, end, type, status } = cycle;
  return {
    end_user_id: user.endUser,
    amount,
    created_at: timestamp(createdAt).slice(0, -1),
    current_cycle_start: timestamp(start),
    current_cycle_end: timestamp(end),
    cycle_type: type,
    status,
    ...planMembers(cycle),
  };
}

const SECOND = 1_000;
const SECONDS_KNOWN = 4_096;
/** The keys are seconds, because V8 looks up a small number far faster than an instant in milliseconds. */
const seconds = new Map<number, string>();

function timestamp(instant: number): string {
  const second = Math.floor(instant / SECOND);
  let begin = seconds.get(second);
  if (begin === undefined) {
    if (seconds.size === SECONDS_KNOWN) seconds.clear();
    begin = new Date(second * SECOND).toISOString().slice(0, -'000Z'.length);
    seconds.set(second, begin);
  }
  return `${begin}${String(instant - second * SECOND).padStart(3, '0')}Z`;
}
