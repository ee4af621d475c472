// `npm run citus` runs the store contract on a real Citus cluster, in about three minutes. CITUS_URL is the URL of a
// database on the coordinator. This database must contain the Citus extension but no tables, and all nodes of the
// cluster must be registered.

import { after, before } from 'node:test';
import pg from 'pg';
import { storeContract } from '../../store-contract.ts';
import type { NewLedger } from '../../test-ledger.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { byLane } from './by-lane.ts';

const url = process.env.CITUS_URL ?? '';
if (url === '') throw new Error('Set CITUS_URL to the URL of an empty database on the coordinator of a Citus cluster.');

let client: pg.Client;
before(async () => {
  client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("SELECT FROM pg_namespace WHERE nspname = 'scrip'");
  if (rows.length > 0) throw new Error('The database of CITUS_URL must not contain the schema "scrip".');
});
after(() => client.end());

const newLedger: NewLedger = async () => {
  const { failCommits: _, ...plugged } = pluggedDatabase(url, { citus: true, shards: 4 });
  const open = async () => {
    const stores = await plugged.open();
    return { ...stores, ledger: byLane(stores.ledger) };
  };
  const remove = async () => {
    await client.query('DROP SCHEMA scrip CASCADE');
  };
  return { ...plugged, open, remove };
};

storeContract('Citus', newLedger, { clock: 'real' });
