// The primary is gone for good, and its standby takes over: with synchronous replication nothing answered is lost.

import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { StoreFault } from '../../src/store/store.ts';
import { EndUser, historyOf } from '../store/temporary-ledger.ts';
import { History, startLoad } from './acknowledged-history.ts';
import { replicateSynchronously, startPair, until } from './replicated-pair.ts';

const closing: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

test('a synchronous standby that takes over has all that was answered', { timeout: 60_000 }, async (t: TestContext) => {
  const { primary, store, failOver } = await startPair(closing);
  await replicateSynchronously(primary);
  const history = new History();
  const load = startLoad(store, history);
  await load.acknowledged(500, 10_000);
  await failOver();
  await load.acknowledged(100);
  await load.stop();
  assert.deepEqual(await history.faultsOf(store), []);
  t.diagnostic(history.summary);
});

test('a standby that lags loses when it takes over, and the audit says so', { timeout: 60_000 }, async (t) => {
  const { store, replication, failOver } = await startPair(closing);
  const history = new History();
  const load = startLoad(store, history);
  await load.acknowledged(100, 10_000);
  replication.swallowAll();
  await load.acknowledged(200, 10_000);
  await failOver();
  await load.acknowledged(1);
  await load.stop();
  const lost = (await history.faultsOf(store)).filter((fault) => /was acknowledged, and is there 0 times/.test(fault));
  assert(lost.length > 0, `nothing is lost: ${history.summary}`);
  t.diagnostic(`${lost.length} lost of ${history.count('acknowledged')} acknowledged`);
});

const WAITING = `SELECT pid FROM pg_stat_activity WHERE application_name = 'scrip' AND wait_event = 'SyncRep'`;

describe('a synchronous standby that is away', { concurrency: true, timeout: 60_000 }, () => {
  for (const end of ['pg_terminate_backend', 'pg_cancel_backend']) {
    test(`a COMMIT whose wait for the standby is cut short by ${end} is not answered`, async () => {
      const { primary, store, replication, failOver } = await startPair(closing);
      const ada = new EndUser(1, 1);
      await replicateSynchronously(primary);
      assert.deepEqual(await store.write([ada.add(100)]), [ACCEPTED]);
      replication.swallowAll();
      const write = store.write([ada.subtract(30)]).catch((error) => error);
      await until(primary, WAITING);
      await primary.query(`SELECT ${end}(pid) FROM (${WAITING})`);
      const result = await write;
      assert(result instanceof StoreFault, 'it is on one machine only');
      assert.equal(result.code, 'OutcomeUnknown');
      await failOver();
      assert.deepEqual(await historyOf(store, ada), ['+100 add'], 'and that machine was lost');
      assert.deepEqual(await store.write([ada.subtract(1)]), [ACCEPTED]);
    });
  }

  test('while a synchronous standby is away, keeping time takes up no connections', async () => {
    const { primary, store, replication } = await startPair(closing);
    await replicateSynchronously(primary);
    await store.write([new EndUser(1, 1).add(100)]);
    replication.swallowAll();
    await sleep(3_500);
    assert.deepEqual((await primary.query(WAITING)).rows, []);
    assert.equal(store.trouble(), null);
  });
});
