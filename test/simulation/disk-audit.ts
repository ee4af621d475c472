// The audit of `scrip verify`, over the disk of a simulation.

import { audit } from '../../src/ledger/audit.ts';
import type { Disk } from './disk.ts';

/** What is broken, as sentences. */
export function* faultsOfDisk(disk: Disk): Generator<string> {
  const ids = new Set<string>();
  for (const { user, cycles, postings } of disk.users.values()) {
    for (const { message } of audit(user, cycles, postings.toReversed(), disk.latest)) yield message;
    for (const { transactionId, cycleId, period } of postings) {
      const id = period === 0 && cycleId === transactionId ? transactionId : `${transactionId} ${cycleId} ${period}`;
      const { size } = ids;
      if (ids.add(id).size === size) yield `transaction ${transactionId} is stored twice`;
    }
  }
}
