// The contract of the stores, kept by PostgreSQL: with a clock that the test moves, and with the database's own in the
// ways in which the service may be set up. Statements that are not prepared are run behind a pooler, in a file of its own.

import { after, before } from 'node:test';
import { storeContract } from '../store-contract.ts';
import type { NewLedger } from '../test-ledger.ts';
import { newLedgerOn } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  // No machine fails here. What a crash leaves is tested elsewhere.
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** A test mostly waits for the server: for a new database, and for the audit at its end. */
const AT_ONCE = 4;

/** The server is there once the tests run. */
const onServer =
  (...options: [Parameters<typeof newLedgerOn>[1]?, boolean?]): NewLedger =>
  (wall) =>
    newLedgerOn(server, ...options)(wall);

storeContract('PostgreSQL, on a clock that is moved', onServer({}, true), 'movable', AT_ONCE);
storeContract('PostgreSQL, on its own clock', onServer(), 'real', AT_ONCE);
storeContract('PostgreSQL, with one lane', onServer({ lanes: 1 }), 'real', AT_ONCE);
