// Tests a transaction with more postings than fit into a 16-bit number.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ACCEPTED, balanceOf, EndUser } from '../temporary-ledger.ts';
import { openFor } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

const CYCLES = 2 ** 15 + 2;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

test(`a subtraction can spend the credits of ${CYCLES} cycles`, async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(1)]);
  const [copied] = (await ledger.load(ada.key)).state.cycles;
  assert(copied);
  // Adding the cycles one by one would take minutes, because each batch loads all of them.
  await server.query(
    `INSERT INTO scrip.cycles SELECT (jsonb_populate_record(c, jsonb_build_object('cycle_id', gen_random_uuid()))).*
     FROM scrip.cycles c, generate_series(2, ${CYCLES})`,
    new URL(url).pathname.slice(1),
  );
  assert.deepEqual(await ledger.results([ada.subtract(CYCLES)]), [ACCEPTED]);
  assert.equal(await balanceOf(ledger, ada), 0);
});
