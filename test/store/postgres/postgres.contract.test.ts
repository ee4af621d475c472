// Runs the contract on PostgreSQL: with a clock that the test sets, and with the clock of the database in the supported
// configurations. Statements that are not prepared are tested in pooler.test.ts.

import { after, before } from 'node:test';
import { storeContract } from '../store-contract.ts';
import type { NewLedger } from '../test-ledger.ts';
import { newLedgerOn } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  // No crash is tested here, so fsync is off. Each store may use all of its connections at once.
  server = await PostgresServer.start({ fsync: 'off', max_connections: '300' });
});
after(() => server.remove());

/** A test mostly waits for the server, so several tests can run at the same time. */
const AT_ONCE = 4;

/** Reads `server` only when a test runs, because `before` sets it. */
const onServer =
  (...options: [Parameters<typeof newLedgerOn>[1]?, boolean?]): NewLedger =>
  (wall) =>
    newLedgerOn(server, ...options)(wall);

storeContract('PostgreSQL with a clock that the test sets', onServer({}, true), 'movable', AT_ONCE);
storeContract('PostgreSQL with its own clock', onServer(), 'real', AT_ONCE);
storeContract('PostgreSQL with one lane', onServer({ lanes: 1 }), 'real', AT_ONCE);
