// Runs the contract on PostgreSQL: with a clock that the test sets, and with the clock of the database in the supported
// configurations. Statements that are not prepared are tested in pooler.test.ts.

import { after, before } from 'node:test';
import { storeContract } from '../store-contract.ts';
import type { NewLedger } from '../test-ledger.ts';
import { newLedgerOn } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  // The machine does not fail here. Crashes are tested elsewhere.
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** A test mostly waits for the server: for a new database, and for the audit at its end. */
const AT_ONCE = 4;

/** Reads `server` when a test runs, because it is not set before that. */
const onServer =
  (...options: [Parameters<typeof newLedgerOn>[1]?, boolean?]): NewLedger =>
  (wall) =>
    newLedgerOn(server, ...options)(wall);

storeContract('PostgreSQL with a clock that the test sets', onServer({}, true), 'movable', AT_ONCE);
storeContract('PostgreSQL with its own clock', onServer(), 'real', AT_ONCE);
storeContract('PostgreSQL with one lane', onServer({ lanes: 1 }), 'real', AT_ONCE);
