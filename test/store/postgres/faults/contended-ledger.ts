// A ledger with two end users, and another client of its database. The other client locks rows, delays postings, or
// rejects postings.

import assert from 'node:assert/strict';
import pg from 'pg';
import type { PostgresOptions } from '../../../../src/store/postgres/pool/connection-pool.ts';
import { EndUser, problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import type { PostgresServer } from '../postgres-server.ts';

export interface Contended {
  readonly ledger: TestLedger;
  readonly outsider: pg.Client;
  readonly ada: EndUser;
  readonly bob: EndUser;
}

export async function withOutsider(
  server: PostgresServer,
  options: Pick<PostgresOptions, 'lanes' | 'prepared'>,
  work: (contended: Contended) => Promise<void>,
): Promise<void> {
  const url = await server.createDatabase();
  const ledger = await TestLedger.open(async () => pluggedDatabase(url, options));
  const outsider = new pg.Client({ connectionString: url });
  await outsider.connect();
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  await ledger.write([ada.add(100), bob.add(100)]);
  try {
    await work({ ledger, outsider, ada, bob });
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  } finally {
    await outsider.end();
    await ledger.close();
  }
}

export async function beforeEachPosting(outsider: pg.Client, body: string): Promise<void> {
  await outsider.query(`
    CREATE SEQUENCE public.tries;
    CREATE FUNCTION public.interfere() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN new; END $$;
    CREATE TRIGGER interfere BEFORE INSERT ON scrip.postings FOR EACH ROW EXECUTE FUNCTION public.interfere()`);
}
