// Commands that can be told apart afterwards: each moves an amount that no other moves, and the same serial number makes
// the same command in every process.

import type { Command, Renew } from '../../src/ledger/command.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { EndUser } from '../store/temporary-ledger.ts';
import { below, randomFrom } from './randomness.ts';

export const END_USERS = 8;

/** Above all serial numbers, so that a subtraction, of its serial number, is small beside an addition. */
const ADDITION = 1_000_000;
const CYCLE = 2_000_000;

export type JournalLine =
  | { readonly open: true }
  | { readonly batch: readonly number[] }
  /** `stopped`: the amount of the cycle that a command has stopped. */
  | { readonly answered: number; readonly answer: string; readonly stopped?: number };

type Request = Exclude<Command, Renew>;

/** The command of this number. What kind it is depends on the number alone. */
export function commandOf(serial: number): Request {
  const random = randomFrom(serial);
  const user = new EndUser(1, below(END_USERS, random));
  const kind = random();
  const command = (
    kind < 0.45 ? user.add(ADDITION + serial) : kind < 0.75 ? user.subtract(serial) : cycle()
  ) as Request;
  return random() < 0.5
    ? { ...command, idempotency: { key: `key ${serial}`, requestId: `request ${serial}` } }
    : command;

  function cycle() {
    if (kind < 0.85) return user.startCycle(CYCLE + serial, 31, 'replace');
    return kind < 0.92 ? user.startCycle(CYCLE + serial) : user.stopCycle();
  }
}

/** Additions are never refused: of a batch, all of them are there or none. */
export function isAddition(serial: number): boolean {
  return commandOf(serial).kind === 'add';
}

/** Which command a stored transaction comes from. */
export function serialOfTransaction({ amount }: Pick<Transaction, 'amount'>): number {
  return amount < 0 ? -amount : amount % ADDITION;
}
