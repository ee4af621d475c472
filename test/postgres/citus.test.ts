// What Scrip would ask of Citus, on a PostgreSQL that only says that its tables are distributed: the contract of the
// stores in that form, and each statement that the server has then seen held against what Citus refuses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Command, Outcome } from '../../src/ledger/command.ts';
import { openPool } from '../../src/store/postgres/connection.ts';
import { MovementSummary } from '../../src/store/postgres/movement-summary.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { type OpenedLedger, storeContract } from '../store/store-contract.ts';
import { auditOf, EndUser } from '../store/temporary-ledger.ts';
import { leavesItsShard, refusalOf } from './citus-rules.ts';
import { OPTIONS } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

/** As Citus names them; they note the tables, and leave them where they are. */
const STAND_IN = `
  CREATE TABLE IF NOT EXISTS public.pg_dist_partition (logicalrelid regclass);
  CREATE OR REPLACE FUNCTION public.create_reference_table(relation regclass) RETURNS void LANGUAGE sql
    AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';
  CREATE OR REPLACE FUNCTION public.create_distributed_table(
    relation regclass, key text, colocate_with text DEFAULT NULL, shard_count integer DEFAULT NULL
  ) RETURNS void LANGUAGE sql AS 'INSERT INTO public.pg_dist_partition VALUES (relation)';`;

/** The process, then what it did. */
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

async function ledger(): Promise<OpenedLedger & { readonly url: string }> {
  const url = await server.createLedger();
  await server.query(STAND_IN, new URL(url).pathname.slice(1));
  const open = async () => byLane(await openPostgresStore({ ...OPTIONS, citus: true, chained: true, url }));
  return { url, store: await open(), reopen: open, remove: () => server.emptyLedger(url) };
}

/** The store, with a batch for each lane in turn, as group commit writes them: a batch is of one bucket. */
function byLane(store: Store): Store {
  const write: Store['write'] = async (commands) => {
    const outcomes = commands.map((): Outcome | null => null);
    const indices = Map.groupBy(commands.keys(), (index) => store.lanes.of(commands[index] as Command));
    for (const those of indices.values()) {
      const written = await store.write(those.map((index) => commands[index] as Command));
      for (const [place, index] of those.entries()) outcomes[index] = written[place] as Outcome | null;
    }
    return outcomes;
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'write') return write;
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

storeContract('PostgreSQL, as Citus is asked', ledger, 'real', 4);

test('movements are added up a bucket at a time, chains and totals computed anew, and all agrees', async () => {
  const { store, url, remove } = await ledger();
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  const pool = openPool(url, 2);
  for (let round = 0; round < 2; round++) {
    for (const user of users) await store.write([user.add(10)]);
    for (const user of users) await store.write([user.subtract(3)]);
    await new MovementSummary(pool, true).addUp();
  }
  const { rows } = await pool.query('SELECT count(*)::integer AS count FROM scrip.recent_movements');
  assert.equal(rows[0].count, 0);
  await pool.query('UPDATE scrip.end_users SET chain = NULL');
  assert.equal(await store.addChains(), users.length);
  await store.addUpTotals();
  const { outstanding } = await store.accountReads.overview(1, { days: 2 });
  assert.equal(outstanding, BigInt(users.length * 14));
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  assert.equal((await store.prove([], (finding) => assert.fail(finding.message))).chained, users.length);
  await pool.end();
  await store.close();
  await remove();
});

/** The statements that servers were sent after their tables were distributed, by the name under which each was prepared. */
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

test('no statement is one that Citus would refuse, and none of a batch leaves its shard', () => {
  const seen = statementsSeen();
  assert(seen.size > 500, `${seen.size} statements`);
  let ofBatches = 0;
  for (const [statement, name] of seen) {
    assert.equal(refusalOf(statement), null, statement);
    if (!name?.startsWith('scrip_')) continue;
    ofBatches += 1;
    assert(!leavesItsShard(statement), statement);
  }
  assert(ofBatches > 100, `${ofBatches} of batches`);
});

/** What Scrip once sent, and Citus would not have taken. */
const REFUSED = [
  'UPDATE scrip.clock SET at = greatest(at, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) RETURNING at',
  'WITH gone AS (DELETE FROM scrip.recent_movements r WHERE r.bucket = 3 RETURNING r.entries) SELECT count(*) FROM gone',
  'INSERT INTO scrip.api_keys (key_id) VALUES ((SELECT max(key_id) + 1 FROM scrip.api_keys))',
  'SELECT place FROM unnest($1::uuid[]) k JOIN scrip.end_users e ON e.end_user = k.end_user FOR UPDATE OF e',
  'UPDATE scrip.end_users e SET chain = k.chain FROM unnest($1::smallint[], $2::text[]) AS k (bucket, chain) WHERE e.bucket = k.bucket',
  'SELECT 1 FROM scrip.end_users e CROSS JOIN LATERAL (SELECT 1 FROM scrip.postings p WHERE p.bucket = e.bucket LIMIT 1) AS latest',
];

test('control: what Citus refuses is recognized', () => {
  for (const statement of REFUSED) assert.notEqual(refusalOf(statement), null, statement);
  assert(leavesItsShard('INSERT INTO scrip.postings (bucket) SELECT * FROM unnest($1::smallint[])'));
});
