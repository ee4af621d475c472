// Several processes on one database, as tests see them: stores that share nothing but the server.

import assert from 'node:assert/strict';
import type { Outcome } from '../../src/ledger/command.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { auditOf } from '../store/temporary-ledger.ts';
import { OPTIONS } from './moved-clock.ts';
import type { PostgresServer } from './postgres-server.ts';

export interface SharedLedger {
  readonly stores: readonly [Store, Store, Store];
  readonly url: string;
  readonly database: string;
}

/** Runs `work` on three stores of one new ledger, and audits it afterwards. */
export async function withSharedLedger(
  server: PostgresServer,
  work: (ledger: SharedLedger) => Promise<void>,
): Promise<void> {
  const url = await server.createDatabase();
  const open = () => openPostgresStore({ ...OPTIONS, url });
  const stores = await Promise.all([open(), open(), open()]);
  try {
    await work({ stores, url, database: new URL(url).pathname.slice(1) });
    for (const store of stores) assert.equal(store.trouble(), null);
    assert.deepEqual(await auditOf(stores[0]), { findings: [], store: [] }, 'the ledger is whole afterwards');
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

/** How many outcomes there are of each kind. */
export function tally(outcomes: readonly (Outcome | null)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) {
    const name = outcome === null ? 'put off' : (outcome.refused ?? 'accepted');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
