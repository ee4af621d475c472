// Runs the audit of `scrip verify` on the disk of a simulation.

import { audit, type Finding } from '../../src/ledger/audit.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import type { TransactionId } from '../../src/ledger/transaction-id.ts';
import type { Disk, UserRows } from './disk.ts';

export function* faultsOfDisk(disk: Disk): Generator<string> {
  const ids = new Set<string>();
  for (const rows of disk.users.values()) {
    for (const { message } of findingsOf(rows, disk)) yield message;
    for (const { transactionId, cycleId, period } of rows.postings) {
      const id = period === 0 && cycleId === transactionId ? transactionId : `${transactionId} ${cycleId} ${period}`;
      const { size } = ids;
      if (ids.add(id).size === size) yield `transaction ${transactionId} is stored twice`;
    }
  }
}

export function findingsOf(rows: UserRows, { latest }: Pick<Disk, 'latest'>): Iterable<Finding> {
  const transactions = new Map<TransactionId, Posting[]>();
  for (const posting of rows.postings) {
    const { transactionId } = posting;
    const whole = transactions.get(transactionId);
    if (whole === undefined) transactions.set(transactionId, [posting]);
    else whole.push(posting);
  }
  return audit({ ...rows, find: (id) => transactions.get(id) ?? [] }, latest);
}
