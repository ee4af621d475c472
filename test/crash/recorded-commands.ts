// Makes commands from serial numbers. The note of a command is its serial number, so that the test can find the
// transaction of the command.

import type { OnActive, WriteCommand } from '../../src/ledger/command.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import { EndUser } from '../store/temporary-ledger.ts';
import { below, randomFrom } from './randomness.ts';
import { someKind } from './requests.ts';

export const END_USERS = 8;

const ADDITION = 1_000_000;
const AMOUNT_MAX = 1_000;
/** Short holds lapse during the recording, or later while the ledger is closed. */
const HOLD_SECONDS = [1, 1, 5, 3_600];
const NAMED_BACK_MAX = 80;
const UNKNOWN_ID: TransactionId = '019bc0de-0000-4000-8000-000000000000';

export type JournalLine =
  | { readonly open: true }
  | { readonly batch: readonly number[]; readonly named: Readonly<Record<number, TransactionId>> }
  | { readonly answered: number; readonly answer: string; readonly id?: TransactionId | null };

function shapeOf(serial: number) {
  const random = randomFrom(serial);
  const user = below(END_USERS, random);
  const kind = someKind(random);
  return { user, kind, random };
}

export function kindOf(serial: number): WriteCommand['kind'] {
  return shapeOf(serial).kind;
}

export function namedBy(serial: number): number | null {
  const { user, kind, random } = shapeOf(serial);
  if (kind !== 'capture' && kind !== 'release' && kind !== 'refund') return null;
  const wanted = kind === 'refund' ? ['subtract', 'capture'] : ['hold'];
  const candidates: number[] = [];
  for (let other = Math.max(1, serial - NAMED_BACK_MAX); other < serial; other++) {
    const shape = shapeOf(other);
    if (shape.user === user && wanted.includes(shape.kind)) candidates.push(other);
  }
  return candidates[below(Math.max(1, candidates.length), random)] ?? null;
}

export function commandOf(serial: number, named: TransactionId = UNKNOWN_ID): WriteCommand {
  const { user, kind, random } = shapeOf(serial);
  const idempotency = random() < 0.5 ? { key: `key ${serial}`, requestId: `request ${serial}` } : null;
  const request = { ...new EndUser(1, user).key, actor: 'key:1', note: String(serial), idempotency };
  const amount = 1 + below(AMOUNT_MAX, random);
  switch (kind) {
    case 'add':
      return { kind, ...request, amount: ADDITION, ...someValidity(random) };
    case 'subtract':
      return { kind, ...request, amount };
    case 'start-cycle': {
      const onActive = (['replace', 'replace', 'at_period_end', 'at_period_end', 'refuse'] as const)[below(5, random)];
      const rolloverMax = random() < 0.5 ? AMOUNT_MAX : 0;
      return {
        kind,
        ...request,
        amount: ADDITION,
        ...someValidity(random),
        rolloverMax,
        onActive: onActive as OnActive,
      };
    }
    case 'stop-cycle':
      return { kind, ...request };
    case 'hold':
      return { kind, ...request, amount, expiresInSeconds: HOLD_SECONDS[below(HOLD_SECONDS.length, random)] as number };
    case 'capture':
      return { kind, ...request, holdId: named, amount };
    case 'release':
      return { kind, ...request, holdId: named };
    case 'refund':
      return { kind, ...request, transactionId: named, amount: random() < 0.3 ? null : amount, validityDays: null };
  }
}

function someValidity(random: () => number) {
  return random() < 0.5 ? { validityDays: 31, validityMonths: null } : { validityDays: null, validityMonths: 1 };
}

export function isAddition(serial: number): boolean {
  return kindOf(serial) === 'add';
}
