// Runs the audit of `scrip verify` on the disk of a simulation.

import { audit } from '../../src/ledger/audit.ts';
import type { Disk } from './disk.ts';

/** Yields a sentence for each problem. */
export function* faultsOfDisk(disk: Disk): Generator<string> {
  const ids = new Set<string>();
  for (const rows of disk.users.values()) {
    for (const { message } of audit(rows, disk.latest)) yield message;
    for (const { transactionId, cycleId, period } of rows.postings) {
      const id = period === 0 && cycleId === transactionId ? transactionId : `${transactionId} ${cycleId} ${period}`;
      const { size } = ids;
      if (ids.add(id).size === size) yield `transaction ${transactionId} is stored twice`;
    }
  }
}
