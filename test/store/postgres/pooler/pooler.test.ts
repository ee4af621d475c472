// Tests PostgreSQL behind a pooler in transaction mode, with and without prepared statements.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { scrip } from '../../../cli/scrip-command.ts';
import { storeContract } from '../../store-contract.ts';
import { EndUser, problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { auditBeside, openFor, pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { TransactionPooler } from './transaction-pooler.ts';

/** Fewer connections than two stores would open without a pooler. */
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

storeContract(
  'PostgreSQL behind a pooler in transaction mode',
  async () => {
    const direct = await server.createLedger();
    return {
      ...pluggedDatabase(pooler.url(direct), { prepared: false }),
      remove: async () => {
        await pooler.forget(direct);
        await server.emptyLedger(direct);
      },
    };
  },
  { clock: 'real', concurrency: 2, oneIn: 12 },
);

const SESSION_STATE: readonly (readonly [what: string, sql: string])[] = [
  ['settings', `SELECT name FROM pg_settings WHERE source = 'session'`],
  ['prepared statements', 'SELECT name FROM pg_prepared_statements'],
  ['cursors', `SELECT name FROM pg_cursors WHERE name <> ''`],
  ['advisory locks', `SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`],
  ['channels', 'SELECT pg_listening_channels()'],
  ['temporary tables', `SELECT relname FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)`],
];

test('behind a pooler in transaction mode, two stores and the command line work and leave no session state', {
  timeout: 60_000,
}, async (t) => {
  const url = pooler.url(await server.createDatabase());
  const change = { prepared: false };
  const ledgers = [await openFor(t, url, change), await openFor(t, url, change)] as const;
  const [before, histories] = [pooler.transactions, [new History(1), new History(2)] as const];
  const loads = ledgers.map(({ store }, index) => startLoad(store, histories[index] as History));
  t.after(() => Promise.all(loads.map((load) => load.stop())));
  await Promise.all(loads.map((load) => load.acknowledged(1_000, 20_000)));
  const environment = { DATABASE_URL: url, DATABASE_PREPARED: 'no', DATABASE_ACCEPT_UNSAFE: 'yes' };
  const key = await scrip(['key', 'create', '--account', 'Acme'], environment);
  assert.deepEqual([key.code, key.stderr], [0, ''], key.stdout);
  await Promise.all(loads.map((load) => load.stop()));
  await ledgers[0].consumeFeed();
  for (const [index, history] of histories.entries()) {
    assert.deepEqual(await history.faultsOf((ledgers[index] as TestLedger).store, url), []);
    for (const fault of ['StoreUnavailable', 'OutcomeUnknown', 'Internal'] as const)
      assert.equal(history.count(fault), 0, history.summary);
    t.diagnostic(history.summary);
  }
  assert.deepEqual(
    ledgers.map((ledger) => ledger.trouble()),
    [null, null],
  );
  const { code, stdout } = await scrip(['verify'], environment);
  assert.deepEqual([code, /^Verification passed/.test(stdout)], [0, true], stdout);
  assert(pooler.spread >= CONNECTIONS, 'the transactions of one client used all connections');
  t.diagnostic(`${pooler.transactions - before} transactions over ${CONNECTIONS} connections`);
  await assertNoSessionState(url);
});

/** The pooler uses its connections in turn, so repeated transactions reach each connection. */
async function assertNoSessionState(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const backends = new Set<number>();
  for (let transaction = 0; backends.size < CONNECTIONS; transaction++) {
    assert(transaction < 100 * CONNECTIONS, 'the pooler never used one of its connections');
    const queries = [`SELECT pg_backend_pid() AS pid`, ...SESSION_STATE.map(([, sql]) => sql)];
    const results = (await client.query(queries.join('; '))) as unknown as pg.QueryResult[];
    backends.add(results[0]?.rows[0].pid);
    for (const [index, [what]] of SESSION_STATE.entries()) assert.deepEqual(results[index + 1]?.rows, [], what);
  }
  await client.end();
}

test('behind a pooler in transaction mode, prepared statements fail with a clear message and without partial effects', {
  timeout: 60_000,
}, async () => {
  const direct = await server.createDatabase();
  const open = () => TestLedger.open(async () => pluggedDatabase(pooler.url(direct)));
  const ledgers = await Promise.all([open(), open()]);
  const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index));
  const writes = users.map((user, index) => (ledgers[index % 2] as TestLedger).write([user.add(1)]));
  const results = await Promise.allSettled(writes);
  const faults = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  assert(faults.length > 0, 'some prepared statements are missing or exist already');
  for (const fault of faults) {
    assert(fault instanceof StoreFault);
    assert.equal(fault.code, 'StoreUnavailable');
    assert.match(fault.message, /^prepared statement "scrip_\w+" (does not exist|already exists)$/);
  }
  assert(
    ledgers.some((ledger) => ledger.trouble() !== null),
    'a store reports the trouble',
  );
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  assert.deepEqual(problemsOf(await auditBeside(direct)), []);
});
