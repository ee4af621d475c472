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

/** What hangs is closed from outside. */
const LIMIT = { timeout: 40_000 };
const CLOSE_MS = 5_000;

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

/** A store behind a proxy, with 100 credits of one end user in it. Whatever hangs, it is closed at the end of the test. */
async function openNetwork(t: TestContext): Promise<Network> {
  const direct = await server.createDatabase();
  const proxy = await TcpProxy.to(server.port);
  const url = proxy.url(direct);
  const store = await openPostgresStore({ url, lanes: 2, prepared: true, citus: false, acceptUnsafe: true });
  t.after(() => close(store, proxy), { timeout: 2 * CLOSE_MS });
  const ada = new EndUser(1, 1);
  await store.write([ada.add(100)]);
  return { store, proxy, ada };
}

/** Without its network a store has nothing more to wait for. */
async function close(store: Store, proxy: TcpProxy): Promise<void> {
  const closed = store.close();
  await Promise.race([closed, sleep(CLOSE_MS)]);
  await proxy.close();
  await closed;
}

async function withNetwork(t: TestContext, work: (network: Network) => Promise<void>): Promise<void> {
  const network = await openNetwork(t);
  await work(network);
  assert.deepEqual(await auditOf(network.store), { findings: [], store: [] });
}

/** Whoever has an answer has sent COMMIT: if the proxy has not seen it, the test has struck nothing. */
async function hasCome(struck: Promise<unknown>): Promise<void> {
  const isLate = sleep(SLACK_MS).then(() => assert.fail('the proxy has seen no COMMIT'));
  await Promise.race([struck, isLate]);
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

describe('a network that fails', { concurrency: true }, () => {
  for (const [sentence, verdict] of LOST_COMMITS) {
    test(sentence, LIMIT, (t: TestContext) =>
      withNetwork(t, async ({ store, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict);
        const { result, tookMs } = await timed(store.write([ada.subtract(30)]));
        await hasCome(struck);
        assert.deepEqual(result, [ACCEPTED]);
        assert.deepEqual(await historyOf(store, ada), ['-30 subtract', '+100 add']);
        const limit = verdict.endsWith('swallow') ? ANSWER_MS + CONNECT_MS : 0;
        assert(tookMs < limit + SLACK_MS, `it took ${tookMs} ms`);
        assert.deepEqual(await store.write([ada.subtract(1)]), [ACCEPTED], 'the pool is not poisoned');
      }),
    );
  }

  for (const [sentence, verdict] of LOST_COMMITS) {
    test(`${sentence}; so is the batch that was sent behind it`, LIMIT, (t: TestContext) =>
      withNetwork(t, async ({ store, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict);
        const followed = Promise.withResolvers<{ result: unknown; tookMs: number }>();
        const follow = () => followed.resolve(timed(store.write([ada.subtract(5)])));
        const first = await timed(store.write([ada.subtract(30)], follow));
        await hasCome(struck);
        const second = await followed.promise;
        const limit = verdict.endsWith('swallow') ? ANSWER_MS + CONNECT_MS : 0;
        for (const { result, tookMs } of [first, second]) {
          assert.deepEqual(result, [ACCEPTED]);
          assert(tookMs < limit + SLACK_MS, `it took ${tookMs} ms`);
        }
        // Nobody had an answer of the first when the second was asked for, so either may come first.
        const history = await historyOf(store, ada);
        assert.deepEqual(history.toSorted(), ['+100 add', '-30 subtract', '-5 subtract']);
      }),
    );
  }

  for (const verdict of ['swallow', 'pass, then swallow'] as const) {
    test(
      `when COMMIT meets with "${verdict}", and nothing gets through any more, the outcome is unknown`,
      LIMIT,
      (t: TestContext) =>
        withNetwork(t, async ({ store, proxy, ada }) => {
          const struck = proxy.onNextCommit(verdict).then(() => setImmediate(() => proxy.swallowAll()));
          const { result, tookMs } = await timed(store.write([ada.subtract(30)]));
          await hasCome(struck);
          assert.equal(result, 'OutcomeUnknown');
          assert(tookMs < ANSWER_MS + SETTLE_MS + SLACK_MS, `it took ${tookMs} ms`);
          await worksAgain(store, proxy, ada);
          const happened = (await historyOf(store, ada)).filter((entry) => entry === '-30 subtract');
          assert.equal(happened.length, verdict === 'swallow' ? 0 : 1);
        }),
    );
  }

  test('when nothing gets through, a write and a read fail in time, and nothing happened', LIMIT, (t: TestContext) =>
    withNetwork(t, async ({ store, proxy, ada }) => {
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
    }),
  );

  test('a slow network only takes longer', LIMIT, (t: TestContext) =>
    withNetwork(t, async ({ store, proxy, ada }) => {
      proxy.delayMs = 100;
      assert.deepEqual(await store.write([ada.subtract(30)]), [ACCEPTED]);
      assert.equal(await balanceOf(store, ada), 70);
      proxy.delayMs = 0;
    }),
  );
});

test('connections that are cut at random lose nothing that was answered, and double nothing', LIMIT, (t: TestContext) =>
  withNetwork(t, async ({ store, proxy }) => {
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
  }),
);

/** The first write after the network is back, and the first read. Connections that were swallowed are gone for good. */
async function worksAgain(store: Store, proxy: TcpProxy, user: EndUser): Promise<void> {
  proxy.heal();
  const { result, tookMs } = await timed(store.write([user.subtract(1)]));
  assert.deepEqual(result, [ACCEPTED]);
  assert(tookMs < ANSWER_MS + SLACK_MS, `it took ${tookMs} ms`);
  await store.cycles(user.key);
}
