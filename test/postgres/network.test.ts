// The network between the service and its database is cut, or swallows what it is given, at the worst moments.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { eventually } from '../http/running-service.ts';
import { auditOf, balanceOf, EndUser, historyOf } from '../store/temporary-ledger.ts';
import { History, startLoad } from './acknowledged-history.ts';
import { PostgresServer } from './postgres-server.ts';
import { TcpProxy, type Verdict } from './tcp-proxy.ts';

const CUTS = Number(process.env.CUTS ?? 100);

/** Of the client: for a connection, for an answer; and of the search for a lost batch, with its last look. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 5_000;
const SETTLE_MS = 8_000 + 2_000;
const SLACK_MS = 1_000;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Network {
  readonly store: Store;
  readonly proxy: TcpProxy;
  readonly ada: EndUser;
}

/** A store behind a proxy, with 100 credits of one end user in it. */
async function withNetwork(work: (network: Network) => Promise<void>): Promise<void> {
  const direct = await server.createDatabase();
  const proxy = await TcpProxy.to(server.port);
  const url = proxy.url(direct);
  const store = await openPostgresStore({ url, lanes: 2, prepared: true, citus: false, acceptUnsafe: true });
  const ada = new EndUser(1, 1);
  await store.write([ada.add(100)]);
  try {
    await work({ store, proxy, ada });
    assert.deepEqual(await auditOf(store), { findings: [], store: [] });
  } finally {
    await store.close();
    await proxy.close();
  }
}

/** What became of a write, and how long that took. */
async function timed(write: Promise<unknown>): Promise<{ result: unknown; tookMs: number }> {
  const started = performance.now();
  const result = await write.catch((error) => (error instanceof StoreFault ? error.code : error));
  return { result, tookMs: performance.now() - started };
}

const LOST_COMMITS: readonly (readonly [sentence: string, verdict: Verdict])[] = [
  ['a COMMIT that never arrives is run again, once', 'cut'],
  ['a COMMIT whose reply is lost counts as done, once', 'pass, then cut'],
  ['a COMMIT that is swallowed is run again, once', 'swallow'],
  ['a COMMIT whose reply is swallowed counts as done, once', 'pass, then swallow'],
];

describe('a network that fails', { concurrency: true, timeout: 60_000 }, () => {
  for (const [sentence, verdict] of LOST_COMMITS) {
    test(sentence, () =>
      withNetwork(async ({ store, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict);
        const { result, tookMs } = await timed(store.write([ada.subtract(30)]));
        await struck;
        assert.deepEqual(result, [ACCEPTED]);
        assert.deepEqual(await historyOf(store, ada), ['-30 subtract', '+100 add']);
        const limit = verdict.endsWith('swallow') ? ANSWER_MS + CONNECT_MS : 0;
        assert(tookMs < limit + SLACK_MS, `it took ${tookMs} ms`);
        assert.deepEqual(await store.write([ada.subtract(1)]), [ACCEPTED], 'the pool is not poisoned');
      }),
    );
  }

  for (const verdict of ['swallow', 'pass, then swallow'] as const) {
    test(`when COMMIT meets with "${verdict}", and nothing gets through any more, the outcome is unknown`, () =>
      withNetwork(async ({ store, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict).then(() => setImmediate(() => proxy.swallowAll()));
        const { result, tookMs } = await timed(store.write([ada.subtract(30)]));
        await struck;
        assert.equal(result, 'OutcomeUnknown');
        assert(tookMs < ANSWER_MS + SETTLE_MS + SLACK_MS, `it took ${tookMs} ms`);
        await worksAgain(store, proxy, ada);
        const happened = (await historyOf(store, ada)).filter((entry) => entry === '-30 subtract');
        assert.equal(happened.length, verdict === 'swallow' ? 0 : 1);
      }));
  }

  test('when nothing gets through, a write and a read fail in time, and nothing happened', () =>
    withNetwork(async ({ store, proxy, ada }) => {
      proxy.swallowAll();
      const [write, read, page] = await Promise.all([
        timed(store.write([ada.subtract(30)])),
        timed(store.cycles(ada.key)),
        timed(store.transactions(ada.key, { from: null, limit: 10 })),
      ]);
      for (const { result, tookMs } of [write, read, page]) {
        assert.equal(result, 'StoreUnavailable');
        assert(tookMs < ANSWER_MS + CONNECT_MS + SLACK_MS, `it took ${tookMs} ms`);
      }
      assert.notEqual(store.trouble(), null);
      await worksAgain(store, proxy, ada);
      assert.deepEqual(await historyOf(store, ada), ['-1 subtract', '+100 add']);
      await eventually(() => store.trouble() === null, 'the trouble is over');
    }));

  test('a slow network only takes longer', () =>
    withNetwork(async ({ store, proxy, ada }) => {
      proxy.delayMs = 100;
      assert.deepEqual(await store.write([ada.subtract(30)]), [ACCEPTED]);
      assert.equal(await balanceOf(store, ada), 70);
      proxy.delayMs = 0;
    }));
});

test('connections that are cut at random lose nothing that was answered, and double nothing', (t: TestContext) =>
  withNetwork(async ({ store, proxy }) => {
    const history = new History(2);
    const load = startLoad(store, history);
    let cuts = 0;
    while (cuts < CUTS) {
      if (proxy.cutOne()) cuts += 1;
      await sleep(randomInt(30));
    }
    await load.acknowledged(100);
    await load.stop();
    assert.deepEqual(await history.faultsOf(store), []);
    assert.equal(history.count('OutcomeUnknown'), 0, 'the server is there: whatever was lost can be found out');
    t.diagnostic(`${cuts} cuts: ${history.summary}`);
  }));

/** The first write after the network is back, and the first read. Connections that were swallowed are gone for good. */
async function worksAgain(store: Store, proxy: TcpProxy, user: EndUser): Promise<void> {
  proxy.heal();
  const { result, tookMs } = await timed(store.write([user.subtract(1)]));
  assert.deepEqual(result, [ACCEPTED]);
  assert(tookMs < ANSWER_MS + SLACK_MS, `it took ${tookMs} ms`);
  await store.cycles(user.key);
}
