// Checks the SQL that Scrip would send to Citus. The contract tests run on PostgreSQL with stand-ins for the functions
// of Citus, and each logged statement is checked against the rules of Citus.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Command, Outcome } from '../../../../src/ledger/command.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { storeContract } from '../../store-contract.ts';
import { EndUser, problemsOf } from '../../temporary-ledger.ts';
import { type NewLedger, TestLedger } from '../../test-ledger.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { leavesItsShard, refusalOf } from './citus-rules.ts';

/** Stand-ins for functions of Citus, which only record the names of the tables. */
const STAND_IN = `
  CREATE TABLE IF NOT EXISTS public.pg_dist_partition (logicalrelid regclass);
  CREATE OR REPLACE FUNCTION public.create_reference_table(relation regclass) RETURNS void LANGUAGE sql
    AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';
  CREATE OR REPLACE FUNCTION public.create_distributed_table(
    relation regclass, key text, colocate_with text DEFAULT NULL, shard_count integer DEFAULT NULL
  ) RETURNS void LANGUAGE sql AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';`;

const ENTRY = /^(\d+) LOG: {2}(?:statement|execute (\S+)): (.*)$/s;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({
    fsync: 'off',
    logging_collector: 'on',
    log_directory: 'log',
    log_filename: 'all.log',
    log_rotation_size: '0',
    log_statement: 'all',
    log_line_prefix: '%p ',
  });
});
after(() => server.remove());

const newLedger: NewLedger = async () => {
  const url = await server.createLedger();
  await server.query(STAND_IN, new URL(url).pathname.slice(1));
  const plugged = pluggedDatabase(url, { citus: true });
  const open = async () => {
    const stores = await plugged.open();
    return { ...stores, ledger: byLane(stores.ledger) };
  };
  return { ...plugged, open, remove: () => server.emptyLedger(url) };
};

/** Splits each batch by lane, as group commit does, so that each batch belongs to one bucket. */
function byLane(store: LedgerStore): LedgerStore {
  const writeBatch = store.write.bind(store);
  const write: LedgerStore['write'] = async (commands, onDecided) => {
    const outcomes = commands.map((): Outcome | null => null);
    const indices = Map.groupBy(commands.keys(), (index) => store.lanes.of(commands[index] as Command));
    for (const those of indices.values()) {
      const batch = those.map((index) => commands[index] as Command);
      const written = await writeBatch(batch, onDecided);
      for (const [place, index] of those.entries()) outcomes[index] = written[place] as Outcome | null;
    }
    return outcomes;
  };
  return Object.assign(store, { write });
}

storeContract('PostgreSQL with the SQL for Citus', newLedger, 'real', 4);

test('with the SQL for Citus, the totals are correct before and after they are rebuilt, and the audit finds no problem', async () => {
  const ledger = await TestLedger.open(newLedger);
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  const outstanding = async () => (await ledger.console.overview(1, { days: 2 })).outstanding;
  await ledger.write(users.map((user) => user.add(10)));
  await ledger.consumeFeed();
  await ledger.write(users.map((user) => user.subtract(3)));
  assert.deepEqual(problemsOf(await ledger.audit()), [], 'some postings are not counted yet');
  await ledger.consumeFeed();
  assert.equal(await outstanding(), 280n);
  await ledger.withTools((tools) => tools.rebuildTotals());
  assert.equal(await outstanding(), 280n);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  await ledger.close();
  await ledger.remove();
});

/** The logged statements except those of migrations, each with the name of its prepared statement, if any. */
function statementsSeen(): Map<string, string | undefined> {
  const log = readFileSync(join(server.data, 'log', 'all.log'), 'utf8');
  const migrating = new Set<string>();
  const seen = new Map<string, string | undefined>();
  for (const entry of log.split(/\n(?=\d+ )/)) {
    const [, process = '', name, text = ''] = ENTRY.exec(entry) ?? [];
    if (text.includes('pg_advisory_xact_lock')) migrating.add(process);
    if (!migrating.has(process)) for (const one of text.split(';')) seen.set(one.trim(), name);
    if (text === 'COMMIT') migrating.delete(process);
  }
  return seen;
}

test('Citus would accept every statement that Scrip sends, and each statement of a batch uses only one shard', () => {
  const seen = statementsSeen();
  assert(seen.size > 500, `${seen.size} statements`);
  let ofBatches = 0;
  for (const [statement, name] of seen) {
    assert.equal(refusalOf(statement), null, statement);
    if (!name?.startsWith('scrip_')) continue;
    ofBatches += 1;
    assert(!leavesItsShard(statement), statement);
  }
  assert(ofBatches > 100, `${ofBatches} statements of batches`);
});

const REFUSED = [
  'UPDATE scrip.clock SET at = greatest(at, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) RETURNING at',
  'WITH taken AS (DELETE FROM scrip.feed f WHERE f.bucket = 3 RETURNING f.at) SELECT count(*) FROM taken',
  'INSERT INTO scrip.api_keys (key_id) VALUES ((SELECT max(key_id) + 1 FROM scrip.api_keys))',
  'SELECT place FROM unnest($1::uuid[]) k JOIN scrip.end_users e ON e.end_user = k.end_user FOR UPDATE OF e',
  'UPDATE scrip.cycles c SET status = k.status FROM unnest($1::smallint[], $2::text[]) AS k (bucket, status) WHERE c.bucket = k.bucket',
  'SELECT 1 FROM scrip.end_users e CROSS JOIN LATERAL (SELECT 1 FROM scrip.postings p WHERE p.bucket = e.bucket LIMIT 1) AS latest',
];

test('control: statements that Citus would reject are recognized', () => {
  for (const statement of REFUSED) assert.notEqual(refusalOf(statement), null, statement);
  assert(leavesItsShard('INSERT INTO scrip.postings (bucket) SELECT * FROM unnest($1::smallint[])'));
});
