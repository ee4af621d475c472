// Runs the model-based test on PostgreSQL, with a clock that the test sets.

import { after, before } from 'node:test';
import { effort } from '../../effort.ts';
import { modelTests } from '../../model/model-tests.ts';
import { newLedgerOn } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

/** A run takes about a second. */
const RUNS = effort(5, 15);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

modelTests('PostgreSQL', {
  file: 'test/store/postgres/postgres.model.test.ts',
  runs: RUNS,
  runMsMax: 5_000,
  newLedger: (wall) => newLedgerOn(server, {}, true)(wall),
});
