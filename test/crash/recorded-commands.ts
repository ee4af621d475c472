// Commands with their serial number as their note, which identifies their transactions. The same serial number makes
// the same command in every process, except for the id of a hold or transaction to which it refers.

import type { WriteCommand } from '../../src/ledger/command.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import { EndUser } from '../store/temporary-ledger.ts';
import { below, randomFrom } from './randomness.ts';
import { someKind } from './requests.ts';

export const END_USERS = 8;

/** So large that subtractions and holds rarely fail. */
const ADDITION = 1_000_000;
const AMOUNT_MAX = 1_000;
/** Some holds lapse while the ledger is recorded, others before it is opened again. */
const HOLD_SECONDS = [1, 1, 5, 3_600];
/** A command refers to the hold or transaction of one of this many commands before it. */
const NAMED_BACK_MAX = 80;
const UNKNOWN_ID: TransactionId = '019bc0de-0000-4000-8000-000000000000';

export type JournalLine =
  | { readonly open: true }
  /** `named` maps the serial number of a command to the id of the hold or transaction that the command refers to. */
  | { readonly batch: readonly number[]; readonly named: Readonly<Record<number, TransactionId>> }
  /** `id` is the transaction that the command made, if any. */
  | { readonly answered: number; readonly answer: string; readonly id?: TransactionId | null };

/** The parts of a command that depend only on its serial number. */
function shapeOf(serial: number) {
  const random = randomFrom(serial);
  const user = below(END_USERS, random);
  const kind = someKind(random);
  return { user, kind, random };
}

export function kindOf(serial: number): WriteCommand['kind'] {
  return shapeOf(serial).kind;
}

/**
 * @returns the serial number of the command that makes the hold or transaction to which this command refers; null if
 *   there is none
 */
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

/** @param named the id of the hold or transaction to which the command refers, if the id is known */
export function commandOf(serial: number, named: TransactionId = UNKNOWN_ID): WriteCommand {
  const { user, kind, random } = shapeOf(serial);
  const idempotency = random() < 0.5 ? { key: `key ${serial}`, requestId: `request ${serial}` } : null;
  const request = { ...new EndUser(1, user).key, actor: 'key:1', note: String(serial), idempotency };
  const amount = 1 + below(AMOUNT_MAX, random);
  switch (kind) {
    case 'add':
      return { kind, ...request, amount: ADDITION, validityDays: 31 };
    case 'subtract':
      return { kind, ...request, amount };
    case 'start-cycle': {
      const onActive = random() < 0.6 ? 'replace' : 'refuse';
      return { kind, ...request, amount: ADDITION, validityDays: 31, onActive };
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

/** Additions are never refused, so either all additions of a batch are stored or none. */
export function isAddition(serial: number): boolean {
  return kindOf(serial) === 'add';
}
