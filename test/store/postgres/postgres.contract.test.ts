// Runs the store contract on PostgreSQL with prepared statements. `pooler/pooler.test.ts` runs it without prepared
// statements.

import { after, before } from 'node:test';
import { storeContract } from '../store-contract.ts';
import type { NewLedger } from '../test-ledger.ts';
import { newLedgerOn } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  // These tests simulate no crashes, so fsync is off.
  server = await PostgresServer.start({ fsync: 'off', max_connections: '300' });
});
after(() => server.remove());

/** Several tests run at once, because each test mostly waits for the server. */
const AT_ONCE = 4;

const onServer =
  (...options: [Parameters<typeof newLedgerOn>[1]?, boolean?]): NewLedger =>
  (wall) =>
    newLedgerOn(server, ...options)(wall);

storeContract('PostgreSQL with a clock that the test sets, and one lane', onServer({ lanes: 1 }, true), {
  clock: 'movable',
  concurrency: AT_ONCE,
});
storeContract('PostgreSQL with its own clock, and four lanes', onServer({ lanes: 4 }), {
  clock: 'real',
  concurrency: AT_ONCE,
  oneIn: 12,
});
