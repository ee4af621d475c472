// Runs the store contract on PostgreSQL with stand-ins for the Citus functions, and checks each logged statement
// against Citus's rules.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../../src/config.ts';
import { Leases, SHARED_LEASES } from '../../../../src/events/webhooks/leases.ts';
import { copyDatabase } from '../../../../src/open-tools.ts';
import { sql } from '../../../../src/store/postgres/pool/connection.ts';
import { openPostgresAccountDatabase } from '../../../../src/store/postgres/reads/account-database.ts';
import type { PostgresLedgerStore } from '../../../../src/store/postgres/reads/ledger-store.ts';
import { bucketOf } from '../../../../src/store/postgres/rows/key.ts';
import { openPostgresAccount } from '../../../../src/store/postgres/tools/account-postings.ts';
import { storeContract } from '../../store-contract.ts';
import { ACCEPTED, EndUser, historyOf, problemsOf } from '../../temporary-ledger.ts';
import { type NewLedger, TestLedger } from '../../test-ledger.ts';
import { at, fileAt, makeLedger, quietly, sha256Of } from '../../tools/copied-ledger.ts';
import { optionsFor, pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import { byLane } from './by-lane.ts';
import { leavesItsShard, refusalOf, SHARD_OF_BUCKET } from './citus-rules.ts';
import { LOG_ENTRY, LOGGED, logOf, STAND_IN } from './stand-in.ts';

const PROBE_PAUSE_MS = 1_000;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start(LOGGED);
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

storeContract('PostgreSQL with the SQL for Citus', newLedger, {
  clock: 'real',
  concurrency: 4,
  oneIn: 8,
  // These tests send some statements that no other test sends.
  always: [
    'the balance at a past instant never changes, even while writes are running',
    'a list of end users shows each of them exactly once, even if several have the same sort key',
    'events are deleted after the retention time, and their positions stay valid',
    'reading events from the position before an instant returns exactly the events since that instant',
    'one call records the last use of several API keys, and changes no other API key',
    'an end user whose requests were all refused does not appear in any list',
    'end users can be found by a prefix of their UUIDs',
    'an account can list and revoke only its own API keys',
    'looking up a transaction by its ID also finds its refunds, in the order in which they were written',
  ],
});

async function openStandIn(url: string, through = url): Promise<{ database: string; ledger: TestLedger }> {
  const database = new URL(url).pathname.slice(1);
  await server.query(STAND_IN, database);
  return { database, ledger: await TestLedger.open(async () => pluggedDatabase(through, { citus: true })) };
}

test('with the SQL for Citus, the totals are correct before and after they are rebuilt, and the audit finds no problem', async () => {
  const ledger = await TestLedger.open(newLedger);
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  const outstanding = async () => (await ledger.console.overview(1, { days: 2 })).outstanding;
  await ledger.write(users.map((user) => user.add(10)));
  await ledger.consumeFeed();
  await ledger.write(users.map((user) => user.subtract(3)));
  assert.deepEqual(problemsOf(await ledger.audit()), [], 'totals need not include all postings yet');
  await ledger.consumeFeed();
  assert.equal(await outstanding(), 280n);
  await ledger.withTools((tools) => tools.rebuildTotals());
  assert.equal(await outstanding(), 280n);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  await ledger.close();
  await ledger.remove();
});

test('with the SQL for Citus, a copy has the same content as its source', async () => {
  const { file } = await makeLedger();
  const url = await server.createDatabase();
  await server.query(STAND_IN, new URL(url).pathname.slice(1));
  await copyDatabase(at(fileAt(file)), { ...at(url), citus: true, acceptUnsafe: true } as Database, quietly);
  assert.equal(await sha256Of(url), await sha256Of(fileAt(file)));
});

test('with the SQL for Citus, writes to a shard whose worker cannot be reached fail immediately, and writes to other shards succeed', async () => {
  const url = await server.createLedger();
  const { database, ledger } = await openStandIn(url);
  const { lanes } = ledger.store;
  const [ada, ...others] = Array.from({ length: 40 }, (_, index) => new EndUser(1, index)) as [EndUser];
  const bob = (others as EndUser[]).find(({ key }) => lanes.of(key) !== lanes.of(ada.key)) as EndUser;
  for (const user of [ada, bob]) await ledger.write([user.add(10)]);
  await server.query(
    `CREATE FUNCTION public.away() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE 'connection to the remote node failed' USING ERRCODE = '08006'; END $$;
     CREATE TRIGGER away BEFORE INSERT ON scrip.postings FOR EACH ROW WHEN (NEW.bucket = ${bucketOf(ada.key)})
       EXECUTE FUNCTION public.away()`,
    database,
  );
  const began = performance.now();
  for (let writes = 0; writes < 2; writes++)
    await assert.rejects(ledger.write([ada.subtract(1)]), { code: 'StoreUnavailable', isPartial: true });
  assert(performance.now() - began < 5_000, 'the batch is retried once, not for six seconds');
  assert.equal(ledger.store.unreachable().length, 1);
  assert.equal(ledger.trouble(), null);
  assert.deepEqual(await ledger.results([bob.subtract(1)]), [ACCEPTED]);
  await ledger.due();

  await server.query('DROP FUNCTION public.away CASCADE', database);
  await sleep(PROBE_PAUSE_MS);
  await ledger.due();
  assert.deepEqual(ledger.store.unreachable(), [], 'a search for due end users probes the shard');
  assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  await ledger.close();
  await server.emptyLedger(url);
});

test('with the SQL for Citus, if a batch times out because a worker does not answer, Scrip probes the shard before the batch fails, so that later requests to the shard fail immediately', async () => {
  const url = await server.createDatabase();
  const { database, ledger } = await openStandIn(url);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10)]);
  const shard = SHARD_OF_BUCKET.replace('bucket', String(bucketOf(ada.key)));
  await server.query(
    `CREATE FUNCTION public.time_out() RETURNS boolean LANGUAGE plpgsql
       AS $$ BEGIN RAISE 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;
     ALTER TABLE scrip.feed_consumers RENAME TO answering_consumers;
     CREATE VIEW scrip.feed_consumers AS SELECT * FROM scrip.answering_consumers
       WHERE CASE WHEN ${SHARD_OF_BUCKET} = ${shard} THEN public.time_out() ELSE true END;
     ALTER TABLE scrip.postings ADD CHECK (${SHARD_OF_BUCKET} <> ${shard} OR public.time_out()) NOT VALID`,
    database,
  );
  const away = { code: 'StoreUnavailable', isPartial: true };
  const { pool } = (ledger.store as PostgresLedgerStore).database;
  const waiting = await Promise.all(Array.from({ length: 8 }, () => pool.connect()));
  await assert.rejects(ledger.write([ada.subtract(1)]), away, 'probes do not need the connections of waiting reads');
  for (const connection of waiting) connection.release(true);
  assert.equal(ledger.store.unreachable().length, 1);
  await assert.rejects(ledger.store.load(ada.key), away);
  assert.equal(ledger.trouble(), null);
  await ledger.close();
});

test('with the SQL for Citus, a batch whose COMMIT fails with XX000 is looked up, because the worker might have stored it', async () => {
  const url = await server.createLedger();
  const { database, ledger } = await openStandIn(url);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10)]);
  await server.query(
    `CREATE SEQUENCE public.commits;
     CREATE FUNCTION public.away_once() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN IF nextval('public.commits') = 1 THEN RAISE 'could not commit' USING ERRCODE = 'XX000'; END IF;
         RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER away_once AFTER INSERT ON scrip.postings DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION public.away_once()`,
    database,
  );
  assert.deepEqual(await ledger.results([ada.subtract(3)]), [ACCEPTED], 'the batch was not stored, and is retried');
  assert.deepEqual(await historyOf(ledger, ada), ['-3 subtract', '+10 add']);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
  await ledger.close();
  await server.query('DROP FUNCTION public.away_once CASCADE; DROP SEQUENCE public.commits', database);
  await server.emptyLedger(url);
});

test('with the SQL for Citus, a batch begins only after a move of its shard has ended', async () => {
  const shard = SHARD_OF_BUCKET.replace('bucket', String(bucketOf(new EndUser(1, 1).key)));
  // The stand-in for Citus's lock is an advisory lock.
  await batchWaitsFor(`SELECT pg_advisory_xact_lock(${shard})`);
});

test('with the SQL for Citus, a batch begins only after an operator command has unlocked the clock', async () => {
  await batchWaitsFor('LOCK TABLE scrip.clock IN SHARE MODE');
});

/** Citus takes this lock on each table of a shard while it moves the shard. */
const MOVING = 'LOCK TABLE scrip.shard_moves IN ROW EXCLUSIVE MODE';

test('with the SQL for Citus, verify, digest and export begin only after moves of shards have ended', async () => {
  await waitsFor(MOVING, async (ledger) => {
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });
  await waitsFor(MOVING, async (ledger) => {
    const [digest] = await ledger.digest();
    assert.equal(digest?.postings, 1);
  });
  await waitsFor(MOVING, async (ledger, url) => {
    await ledger.withAccounts((queries) =>
      queries.insertInto('accounts').values({ account: 1, name: 'Acme', created_at: 0 }).execute(),
    );
    const account = await openPostgresAccount(optionsFor(url, { citus: true }), 'Acme');
    await Array.fromAsync(account.batches());
    await account.close();
  });
});

async function batchWaitsFor(lock: string): Promise<void> {
  await waitsFor(lock, async (ledger) => {
    assert.deepEqual(await ledger.results([new EndUser(1, 1).subtract(1)]), [ACCEPTED]);
  });
}

/** Asserts that `work` ends only after another transaction has released a lock. */
async function waitsFor(lock: string, work: (ledger: TestLedger, url: string) => Promise<void>): Promise<void> {
  const url = await server.createLedger();
  const { ledger } = await openStandIn(url);
  await ledger.write([new EndUser(1, 1).add(10)]);
  await ledger.consumeFeed();
  const { pool } = (ledger.store as PostgresLedgerStore).database;
  const locking = await pool.connect();
  await locking.send([sql('BEGIN'), sql(lock)]);
  let isDone = false;
  const working = work(ledger, url).finally(() => {
    isDone = true;
  });
  await sleep(300);
  assert(!isDone, 'the work waits');
  await locking.send([sql('COMMIT')]);
  locking.release(true);
  await working;
  await ledger.close();
  await server.emptyLedger(url);
}

test('with the SQL for Citus, processes that start at the same time create the functions of the shards once', async () => {
  const url = await server.createDatabase();
  await server.query(STAND_IN, new URL(url).pathname.slice(1));
  const ledgers = await Promise.all(
    Array.from({ length: 3 }, () => TestLedger.open(async () => pluggedDatabase(url, { citus: true }))),
  );
  const ada = new EndUser(1, 1);
  for (const ledger of ledgers) assert.deepEqual(await ledger.results([ada.add(1)]), [ACCEPTED]);
  for (const ledger of ledgers) await ledger.close();
});

test('with the SQL for Citus, a batch is stored once if the connection is lost after its writes and its COMMIT were sent', async () => {
  const url = await server.createLedger();
  const proxy = await TcpProxy.to(server.port);
  const { database, ledger } = await openStandIn(url, proxy.url(url));
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(10)]);
  await server.query(
    `CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
     CREATE TRIGGER wait AFTER INSERT ON scrip.postings EXECUTE FUNCTION public.wait()`,
    database,
  );
  const lost = proxy.onNextCommit('pass, then cut');
  assert.deepEqual(await ledger.results([ada.subtract(3)]), [ACCEPTED]);
  await lost;
  assert.deepEqual(await historyOf(ledger, ada), ['-3 subtract', '+10 add']);
  await ledger.close();
  await proxy.close();
  await server.query('DROP FUNCTION public.wait CASCADE', database);
  await server.emptyLedger(url);
});

test('with the SQL for Citus, a process can lease webhook endpoints', async () => {
  const url = await server.createLedger();
  const { ledger } = await openStandIn(url);
  const accounts = openPostgresAccountDatabase(url);
  await accounts.queries.insertInto('accounts').values({ account: 1, name: 'acme', created_at: 1 }).execute();
  const endpoint = {
    endpoint_id: 1,
    account: 1,
    url: 'https://example.com/',
    types: '',
    secret: '',
    previous_secrets: '[]',
  };
  await accounts.queries
    .insertInto('webhook_endpoints')
    .values({ ...endpoint, created_at: 1, created_by: 'operator' })
    .execute();
  const [own, other] = ['own', 'other'].map((name) => new Leases(accounts, name, SHARED_LEASES)) as [Leases, Leases];
  assert.deepEqual(await own.claim([], [1]), [1]);
  await own.renew([1]);
  assert.deepEqual(await other.claim([], [1]), []);
  assert.deepEqual(
    (await other.look()).map(({ isFree }) => isFree),
    [false],
  );
  await accounts[Symbol.asyncDispose]();
  await ledger.close();
  await server.emptyLedger(url);
});

/**
 * Maps each logged statement to the name of its prepared statement, or to undefined if it was not prepared. Leaves out
 * the statements of migrations.
 */
function statementsSeen(): Map<string, string | undefined> {
  const migrating = new Set<string>();
  const seen = new Map<string, string | undefined>();
  for (const entry of logOf(server)) {
    const [, process = '', name, text = ''] = LOG_ENTRY.exec(entry) ?? [];
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
  "SET LOCAL plan_cache_mode = 'force_generic_plan'",
  'SELECT 1 FROM scrip.end_users e WHERE e.bucket IN (0, 1) FOR UPDATE OF e',
  'SELECT 1 FROM scrip.cycles WHERE bucket IN (0, 1, 2, 3) AND ends_at <= $1 AND cycles.bucket IN (0, 1)',
  'UPDATE scrip.clock SET at = greatest(at, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) RETURNING at',
  'update "scrip"."webhook_endpoints" set "leased_until" = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 1',
  'update "scrip"."webhook_endpoints" set "leased_by" = $1 where CASE WHEN leased_until < (extract(epoch FROM statement_timestamp()) * 1000)::bigint THEN 1 ELSE 0 END = 1',
  'WITH taken AS (DELETE FROM scrip.feed f WHERE f.bucket = 3 RETURNING f.at) SELECT count(*) FROM taken',
  'INSERT INTO scrip.api_keys (key_id) VALUES ((SELECT max(key_id) + 1 FROM scrip.api_keys))',
  'SELECT place FROM unnest($1::uuid[]) k JOIN scrip.end_users e ON e.end_user = k.end_user FOR UPDATE OF e',
  'UPDATE scrip.cycles c SET status = k.status FROM unnest($1::smallint[], $2::text[]) AS k (bucket, status) WHERE c.bucket = k.bucket',
  'SELECT 1 FROM scrip.end_users e CROSS JOIN LATERAL (SELECT 1 FROM scrip.postings p WHERE p.bucket = e.bucket LIMIT 1) AS latest',
];

test('control: the check of logged statements recognizes statements that Citus would reject', () => {
  for (const statement of REFUSED) assert.notEqual(refusalOf(statement), null, statement);
  assert(leavesItsShard('SELECT 1 FROM scrip.cycles c WHERE c.bucket IN (0, 1)'));
  assert(leavesItsShard('INSERT INTO scrip.postings (bucket) SELECT * FROM unnest($1::smallint[])'));
});
