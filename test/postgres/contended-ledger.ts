// A ledger of two end users, beside whom somebody else is at work in the same database: who locks rows, or meddles with
// each posting before it is stored.

import assert from 'node:assert/strict';
import pg from 'pg';
import type { PostgresOptions } from '../../src/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { auditOf, EndUser } from '../store/temporary-ledger.ts';
import type { PostgresServer } from './postgres-server.ts';

export interface Contended {
  readonly store: Store;
  /** Another user of the same database. */
  readonly outsider: pg.Client;
  readonly ada: EndUser;
  readonly bob: EndUser;
}

/** Runs `work` on two end users with 100 credits each, and audits the ledger afterwards. */
export async function withOutsider(
  server: PostgresServer,
  options: Pick<PostgresOptions, 'lanes' | 'prepared'>,
  work: (contended: Contended) => Promise<void>,
): Promise<void> {
  const url = await server.createDatabase();
  const store = await openPostgresStore({ ...options, url, citus: false, acceptUnsafe: true });
  const outsider = new pg.Client({ connectionString: url });
  await outsider.connect();
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  await store.write([ada.add(100), bob.add(100)]);
  try {
    await work({ store, outsider, ada, bob });
    assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  } finally {
    await outsider.end();
    await store.close();
  }
}

/** Runs for each posting, before it is stored. */
export async function beforeEachPosting(outsider: pg.Client, body: string): Promise<void> {
  await outsider.query(`
    CREATE SEQUENCE public.tries;
    CREATE FUNCTION public.meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN new; END $$;
    CREATE TRIGGER meddle BEFORE INSERT ON scrip.postings FOR EACH ROW EXECUTE FUNCTION public.meddle()`);
}
