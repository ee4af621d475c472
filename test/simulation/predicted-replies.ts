// Predicts response bodies from the reference model and the description of the interface, without code of the service.

import type { ModelBalance, ModelCycle, ModelOutcome, ModelTransaction, ModelUser } from '../model/reference-model.ts';
import type { Operation } from './operation.ts';

type Accepted = Extract<ModelOutcome, { refused: null }>;
type Refused = Exclude<ModelOutcome, { refused: null }> | { readonly refused: 'IdempotencyKeyReused' };

export function bodyOfSuccess({ user, command }: Operation, { cycle }: Accepted): string {
  if (cycle !== null) return JSON.stringify(cycleObject(user, cycle));
  const amount = command !== null && 'amount' in command ? command.amount : null;
  return `{"end_user_id":"${user.endUser}","amount":${amount}}`;
}

/** A problem document without the texts for people and the request id. */
export function problemOf(user: ModelUser, outcome: Refused): Record<string, unknown> {
  switch (outcome.refused) {
    case 'InsufficientFunds': {
      const { requested, available } = outcome;
      return { status: 402, error: 'InsufficientFunds', requested, available, shortfall: requested - available };
    }
    case 'BalanceTooLarge': {
      const { requested, available } = outcome;
      return { status: 422, error: 'BalanceTooLarge', requested, available };
    }
    case 'CycleAlreadyActive':
      return { status: 409, error: 'CycleAlreadyActive', cycle: cycleObject(user, outcome.cycle) };
    case 'CycleNotFound':
      return { status: 404, error: 'CycleNotFound' };
    case 'IdempotencyKeyReused':
      return { status: 422, error: 'IdempotencyKeyReused' };
  }
}

export function balanceText(user: ModelUser, { balance, entries }: ModelBalance): string {
  const cycles = entries.map(
    ({ start, end, remaining, amount, status, type }) =>
      `{"cycle_start":"${timestamp(start)}","cycle_end":"${timestamp(end)}","amount":${remaining},"starting_amount":${amount},"status":"${status}","cycle_type":"${type}"}`,
  );
  return `{"end_user_id":"${user.endUser}","active_balance_by_cycle":[${cycles.join(',')}],"active_balance":${balance}}`;
}

/** A cache of the text of each transaction, which never changes during a seed. */
export type KnownTexts = Map<ModelTransaction, string>;

/** The texts of transactions without their ids, because ids cannot be predicted. */
export function transactionTexts(transactions: readonly ModelTransaction[], known: KnownTexts): string[] {
  return transactions.map((transaction) => {
    const { amount, createdAt, expiresAt } = transaction;
    const text =
      known.get(transaction) ??
      `{"amount":${amount},"created_at":"${timestamp(createdAt)}","expire_at":"${timestamp(expiresAt)}"}`;
    known.set(transaction, text);
    return text;
  });
}

export function listText(user: ModelUser, transactions: readonly string[]): string {
  return `{"end_user_id":"${user.endUser}","transactions":[${transactions.join(',')}]}`;
}

function cycleObject(user: ModelUser, { amount, createdAt, start, end, type, status }: ModelCycle) {
  return {
    end_user_id: user.endUser,
    amount,
    created_at: timestamp(createdAt).slice(0, -1),
    current_cycle_start: timestamp(start),
    current_cycle_end: timestamp(end),
    cycle_type: type,
    status,
  };
}

const SECOND = 1_000;
const SECONDS_KNOWN = 4_096;
/** The keys are seconds: V8 finds a small number far faster than an instant in milliseconds. */
const seconds = new Map<number, string>();

/** Formats an instant with a cache, because the same few seconds occur again and again. */
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
