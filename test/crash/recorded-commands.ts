// Commands that can be recognized by their effects: each moves a unique amount. The same serial number makes the same
// command in every process.

import type { WriteCommand } from '../../src/ledger/command.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { EndUser } from '../store/temporary-ledger.ts';
import { below, randomFrom } from './randomness.ts';

export const END_USERS = 8;

/**
 * More than any serial number. A subtraction's amount is its serial number, which is small compared with an addition.
 */
const ADDITION = 1_000_000;
const CYCLE = 2_000_000;

export type JournalLine =
  | { readonly open: true }
  | { readonly batch: readonly number[] }
  /** `stopped` is the amount of the cycle that the command stopped. */
  | { readonly answered: number; readonly answer: string; readonly stopped?: number };

/** Creates a command from its serial number, which is the only input. */
export function commandOf(serial: number): WriteCommand {
  const random = randomFrom(serial);
  const user = new EndUser(1, below(END_USERS, random));
  const kind = random();
  const command = kind < 0.45 ? user.add(ADDITION + serial) : kind < 0.75 ? user.subtract(serial) : cycle();
  return random() < 0.5
    ? { ...command, idempotency: { key: `key ${serial}`, requestId: `request ${serial}` } }
    : command;

  function cycle() {
    if (kind < 0.85) return user.startCycle(CYCLE + serial, 31, 'replace');
    return kind < 0.92 ? user.startCycle(CYCLE + serial) : user.stopCycle();
  }
}

/** Additions are never refused, so either all additions of a batch are stored or none. */
export function isAddition(serial: number): boolean {
  return commandOf(serial).kind === 'add';
}

/** Returns the serial number of the command that made a stored transaction. */
export function serialOfTransaction({ amount }: Pick<Transaction, 'amount'>): number {
  return amount < 0 ? -amount : amount % ADDITION;
}
