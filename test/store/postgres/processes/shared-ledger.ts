// Simulates several processes on one ledger. The stores run in this process, but share only the database.

import assert from 'node:assert/strict';
import type { Outcome } from '../../../../src/ledger/command.ts';
import { problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import type { PostgresServer } from '../postgres-server.ts';

export interface SharedLedger {
  readonly processes: readonly [TestLedger, TestLedger, TestLedger];
  readonly url: string;
  readonly database: string;
}

export async function withSharedLedger(
  server: PostgresServer,
  work: (ledger: SharedLedger) => Promise<void>,
): Promise<void> {
  const url = await server.createDatabase();
  const open = () => TestLedger.open(async () => pluggedDatabase(url));
  const processes = await Promise.all([open(), open(), open()]);
  try {
    await work({ processes, url, database: new URL(url).pathname.slice(1) });
    for (const process of processes) assert.equal(process.trouble(), null);
    assert.deepEqual(problemsOf(await processes[0].audit()), [], 'the audit finds nothing wrong after the test');
  } finally {
    await Promise.all(processes.map((process) => process.close()));
  }
}

export function tally(outcomes: readonly (Outcome | null)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) {
    const name = outcome === null ? 'postponed' : (outcome.refused ?? 'accepted');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
