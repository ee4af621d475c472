// The primary fails permanently, and its standby takes over: with synchronous replication, no acknowledged write is
// lost.

import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { control } from '../../../effort.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf } from '../../temporary-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { optionsFor } from '../postgres-ledger.ts';
import { replicateSynchronously, startPair, until } from './replicated-pair.ts';

const ada = new EndUser(1, 1);

const closing: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

test('when a synchronous PostgreSQL standby takes over, it has every acknowledged write', {
  timeout: 60_000,
}, async (t: TestContext) => {
  const { primary, ledger, url, failOver } = await startPair(closing);
  await replicateSynchronously(primary);
  const history = new History();
  const load = startLoad(ledger.store, history);
  await load.acknowledged(500, 10_000);
  await failOver();
  await load.acknowledged(100);
  await load.stop();
  assert.deepEqual(await history.faultsOf(ledger.store, url), []);
  t.diagnostic(history.summary);
});

test('a standby is refused when Scrip starts, and while Scrip runs: reads of a stale balance fail until the standby is promoted', {
  timeout: 60_000,
}, async () => {
  const { primary, standby, ledger, url, service } = await startPair(closing);
  await ledger.write([ada.add(100)]);
  await until(standby, `SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'`);
  service.target = standby.port;
  service.cutAll();
  const read = () =>
    ledger.store.load(ada.key).then(
      () => 'answered',
      (error) => String(error.message),
    );
  let answer = '';
  // At first, reads find connections of the pool that were cut, or fail without I/O because the store is known to be down.
  for (let reads = 0; reads < 200 && !answer.includes('read-only standby'); reads++) {
    answer = await read();
    await sleep(50);
  }
  assert.match(answer, /read-only standby/);
  await assert.rejects(openPostgresStore(optionsFor(url)), { name: 'CannotOpen', message: /is a read-only standby/ });
  await primary.down('immediate');
  await standby.query('SELECT pg_promote()');
  const stores = await openPostgresStore(optionsFor(url));
  await stores.ledger.close();
  assert.equal(await balanceOf(ledger.store, ada), 100);
});

control(
  'control: the failover test detects lost writes if a lagging PostgreSQL standby takes over',
  {
    timeout: 60_000,
  },
  async (t) => {
    const { ledger, url, replication, failOver } = await startPair(closing);
    const history = new History();
    const load = startLoad(ledger.store, history);
    await load.acknowledged(100, 10_000);
    replication.swallowAll();
    await load.acknowledged(200, 10_000);
    await failOver();
    await load.acknowledged(1);
    await load.stop();
    const lost = (await history.faultsOf(ledger.store, url)).filter((fault) =>
      /was acknowledged but is stored 0 times/.test(fault),
    );
    assert(lost.length > 0, `nothing is lost: ${history.summary}`);
    t.diagnostic(`${lost.length} lost of ${history.count('acknowledged')} acknowledged`);
  },
);

const WAITING = `SELECT pid FROM pg_stat_activity WHERE application_name = 'scrip' AND wait_event = 'SyncRep'`;

describe('an unavailable synchronous standby', { concurrency: true, timeout: 60_000 }, () => {
  for (const end of ['pg_terminate_backend', 'pg_cancel_backend']) {
    test(`if ${end} interrupts a COMMIT that waits for a synchronous PostgreSQL standby, the write is not acknowledged`, async () => {
      const { primary, ledger, replication, failOver } = await startPair(closing);
      await replicateSynchronously(primary);
      assert.deepEqual(await ledger.results([ada.add(100)]), [ACCEPTED]);
      replication.swallowAll();
      const write = ledger.write([ada.subtract(30)]).catch((error) => error);
      await until(primary, WAITING);
      await primary.query(`SELECT ${end}(pid) FROM (${WAITING})`);
      const result = await write;
      assert(result instanceof StoreFault, 'the write is on one machine only');
      assert.equal(result.code, 'OutcomeUnknown');
      await failOver();
      assert.deepEqual(await historyOf(ledger, ada), ['+100 add'], 'the write was lost with that machine');
      assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED]);
    });
  }

  test("while a synchronous PostgreSQL standby is unavailable, the service's heartbeat does not occupy connections", async () => {
    const { primary, ledger, replication } = await startPair(closing);
    await replicateSynchronously(primary);
    await ledger.write([ada.add(100)]);
    replication.swallowAll();
    await sleep(3_500);
    assert.deepEqual((await primary.query(WAITING)).rows, []);
    assert.equal(ledger.trouble(), null);
  });
});
