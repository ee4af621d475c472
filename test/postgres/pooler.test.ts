// Behind a pooler in transaction mode: the whole contract of the stores, a load from two stores at once and the commands,
// with statements that are not prepared; and what befalls those that are.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { scrip } from '../store/scrip-command.ts';
import { type OpenedLedger, storeContract } from '../store/store-contract.ts';
import { auditOf, EndUser } from '../store/temporary-ledger.ts';
import { History, startLoad } from './acknowledged-history.ts';
import { OPTIONS } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';
import { TransactionPooler } from './transaction-pooler.ts';

/** Far fewer than two stores open for themselves. */
const CONNECTIONS = 3;

let server: PostgresServer;
let pooler: TransactionPooler;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
  pooler = await TransactionPooler.to(server.port, CONNECTIONS);
});
after(async () => {
  await pooler.close();
  await server.remove();
});

function open(url: string, prepared: boolean): Promise<Store> {
  return openPostgresStore({ ...OPTIONS, url, prepared });
}

storeContract('PostgreSQL, behind a pooler in transaction mode', () => pooledLedger(), 'real', 2);

async function pooledLedger(): Promise<OpenedLedger> {
  const direct = await server.createLedger();
  const url = pooler.url(direct);
  return {
    store: await open(url, false),
    reopen: () => open(url, false),
    remove: async () => {
      await pooler.forget(direct);
      await server.emptyLedger(direct);
    },
  };
}

/** What a session can hold beside its transaction. Each is empty as long as nobody relies on it. */
const SESSION_STATE: readonly (readonly [what: string, sql: string])[] = [
  ['settings', `SELECT name FROM pg_settings WHERE source = 'session'`],
  ['prepared statements', 'SELECT name FROM pg_prepared_statements'],
  ['cursors', `SELECT name FROM pg_cursors WHERE name <> ''`],
  ['advisory locks', `SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`],
  ['channels', 'SELECT pg_listening_channels()'],
  ['temporary tables', `SELECT relname FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)`],
];

test('two stores and the commands work behind it, and leave nothing in a session', { timeout: 60_000 }, async (t) => {
  const direct = await server.createDatabase();
  const url = pooler.url(direct);
  const stores = await Promise.all([open(url, false), open(url, false)]);
  const [before, histories] = [pooler.transactions, [new History(1), new History(2)] as const];
  const loads = stores.map((store, index) => startLoad(store, histories[index] as History));
  t.after(async () => {
    await Promise.all(loads.map((load) => load.stop()));
    await Promise.all(stores.map((store) => store.close()));
  });
  await Promise.all(loads.map((load) => load.acknowledged(1_000, 20_000)));
  const environment = { DATABASE_URL: url, DATABASE_PREPARED: 'no', DATABASE_ACCEPT_UNSAFE: 'yes' };
  const key = await scrip(['key', 'create', '--account', 'Acme'], environment);
  assert.deepEqual([key.code, key.stderr], [0, ''], key.stdout);
  await Promise.all(loads.map((load) => load.stop()));
  for (const [index, history] of histories.entries()) {
    assert.deepEqual(await history.faultsOf(stores[index] as Store), []);
    for (const fault of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] as const)
      assert.equal(history.count(fault), 0, history.summary);
    t.diagnostic(history.summary);
  }
  assert.deepEqual(
    stores.map((store) => store.trouble()),
    [null, null],
  );
  const { code, stdout } = await scrip(['verify'], environment);
  assert.deepEqual([code, /^The ledger is whole/.test(stdout)], [0, true], stdout);
  assert(pooler.spread >= CONNECTIONS, 'no client kept a connection');
  t.diagnostic(`${pooler.transactions - before} transactions over ${CONNECTIONS} connections`);
  await assertNoSessionState(url);
});

/** Transactions go to one connection after another, those of the stores in between as well: all are met before long. */
async function assertNoSessionState(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const backends = new Set<number>();
  for (let transaction = 0; backends.size < CONNECTIONS; transaction++) {
    assert(transaction < 100 * CONNECTIONS, 'a connection was never met');
    const queries = [`SELECT pg_backend_pid() AS pid`, ...SESSION_STATE.map(([, sql]) => sql)];
    const results = (await client.query(queries.join('; '))) as unknown as pg.QueryResult[];
    backends.add(results[0]?.rows[0].pid);
    for (const [index, [what]] of SESSION_STATE.entries()) assert.deepEqual(results[index + 1]?.rows, [], what);
  }
  await client.end();
}

test('control: prepared statements fail behind it, and say so; nothing is half done', { timeout: 60_000 }, async () => {
  const direct = await server.createDatabase();
  const stores = await Promise.all([open(pooler.url(direct), true), open(pooler.url(direct), true)]);
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  const writes = users.map((user, index) => (stores[index % 2] as Store).write([user.add(1)]));
  const results = await Promise.allSettled(writes);
  const faults = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert(faults.length > 0, 'somebody else has prepared them, or nobody has');
  for (const fault of faults) {
    assert(fault instanceof StoreFault);
    assert.equal(fault.code, 'StoreUnavailable');
    assert.match(fault.message, /^prepared statement "scrip_\w+" (does not exist|already exists)$/);
  }
  assert(
    stores.some((store) => store.trouble() !== null),
    'the service says so too',
  );
  await Promise.all(stores.map((store) => store.close()));
  const store = await open(direct, true);
  assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  await store.close();
});
