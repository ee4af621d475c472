// The contract of the stores, kept by PostgreSQL: with a clock that the test moves, and with the database's own in the
// ways in which the service may be set up. Statements that are not prepared are run behind a pooler, in a file of its own.

import { after, before } from 'node:test';
import type { PostgresOptions } from '../../src/store/postgres/connection.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { type OpenedLedger, storeContract } from '../store/store-contract.ts';
import { OPTIONS, openOnMovedClock } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

let server: PostgresServer;
before(async () => {
  // No machine fails here; what a crash leaves behind is the matter of other tests.
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

/** A test mostly waits for the server: for a new database, and for the audit at its end. */
const AT_ONCE = 4;

storeContract(
  'PostgreSQL, on a clock that is moved, with chains',
  ({ wall }) => ledgerOf((url) => openOnMovedClock(url, wall, { chained: true })),
  'movable',
  AT_ONCE,
);

const WAYS: readonly (readonly [way: string, options: Partial<PostgresOptions>])[] = [
  ['on its own clock', {}],
  ['with one lane and chains', { lanes: 1, chained: true }],
];

for (const [way, options] of WAYS) {
  const open = (url: string) => openPostgresStore({ ...OPTIONS, ...options, url });
  storeContract(`PostgreSQL, ${way}`, () => ledgerOf(open), 'real', AT_ONCE);
}

async function ledgerOf(open: (url: string) => Promise<Store>): Promise<OpenedLedger> {
  const url = await server.createLedger();
  return {
    store: await open(url),
    reopen: () => open(url),
    remove: () => server.emptyLedger(url),
  };
}
