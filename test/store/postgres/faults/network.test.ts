// Cuts the connections between the service and its database, or drops data on the network. The faults occur during a
// COMMIT or at random times.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreFault } from '../../../../src/store/store-fault.ts';
import { eventually } from '../../../http/running-service.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf, problemsOf, resultOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { TcpProxy, type Verdict } from '../tcp-proxy.ts';

const CUTS = Number(process.env.CUTS ?? 100);

/** The store's timeouts: for connecting, for a response, and for the search for the outcome of a lost COMMIT. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 5_000;
const OUTCOME_MS = 8_000 + 2_000;
const SLACK_MS = 5_000;

const LIMIT = { timeout: 40_000 };
const CLOSE_MS = 5_000;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Network {
  readonly ledger: TestLedger;
  readonly direct: string;
  readonly proxy: TcpProxy;
  readonly ada: EndUser;
}

async function openNetwork(t: TestContext): Promise<Network> {
  const direct = await server.createDatabase();
  const proxy = await TcpProxy.to(server.port);
  const url = proxy.url(direct);
  const ledger = await TestLedger.open(async () => pluggedDatabase(url, { lanes: 2 }));
  t.after(() => close(ledger, proxy), { timeout: 2 * CLOSE_MS });
  const ada = new EndUser(1, 1);
  await ledger.write([ada.add(100)]);
  return { ledger, direct, proxy, ada };
}

/** A store cannot close while it waits for the database, so after `CLOSE_MS` the proxy cuts the connections. */
async function close(ledger: TestLedger, proxy: TcpProxy): Promise<void> {
  const closed = ledger.close();
  await Promise.race([closed, sleep(CLOSE_MS)]);
  await proxy.close();
  await closed;
}

async function withNetwork(t: TestContext, work: (network: Network) => Promise<void>): Promise<void> {
  const network = await openNetwork(t);
  await work(network);
  assert.deepEqual(problemsOf(await network.ledger.audit()), []);
}

/** Fails if the proxy saw no COMMIT, because then no fault occurred. */
async function proxySawCommit(struck: Promise<unknown>): Promise<void> {
  const isLate = sleep(SLACK_MS).then(() => assert.fail('the proxy has seen no COMMIT'));
  await Promise.race([struck, isLate]);
}

async function timed(work: Promise<unknown>): Promise<{ result: unknown; tookMs: number }> {
  const started = performance.now();
  const result = await work.catch((error) => (error instanceof StoreFault ? error.code : error));
  return { result, tookMs: performance.now() - started };
}

const LOST_COMMITS: readonly (readonly [sentence: string, verdict: Verdict])[] = [
  ['if a connection is cut before a COMMIT arrives, the batch is run again and takes effect once', 'cut'],
  ['if a connection is cut after a COMMIT, the batch counts as committed and takes effect once', 'pass, then cut'],
  ['if the network drops a COMMIT, the batch is run again and takes effect once', 'swallow'],
  [
    'if the network drops the reply to a COMMIT, the batch counts as committed and takes effect once',
    'pass, then swallow',
  ],
];

describe('network faults between Scrip and PostgreSQL', { concurrency: true }, () => {
  for (const [sentence, verdict] of LOST_COMMITS) {
    test(`on PostgreSQL, ${sentence}`, LIMIT, (t: TestContext) =>
      withNetwork(t, async ({ ledger, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict);
        const { result, tookMs } = await timed(ledger.results([ada.subtract(30)]));
        await proxySawCommit(struck);
        assert.deepEqual(result, [ACCEPTED]);
        assert.deepEqual(await historyOf(ledger, ada), ['-30 subtract', '+100 add']);
        const limit = verdict.endsWith('swallow') ? ANSWER_MS + CONNECT_MS : 0;
        assert(tookMs < limit + SLACK_MS, `it took ${tookMs} ms`);
        assert.deepEqual(await ledger.results([ada.subtract(1)]), [ACCEPTED], 'the connection pool still works');
      }),
    );
  }

  for (const [sentence, verdict] of LOST_COMMITS) {
    test(`on PostgreSQL, ${sentence}, and the next batch in flight also takes effect once`, LIMIT, (t: TestContext) =>
      withNetwork(t, async ({ ledger, proxy, ada }) => {
        const struck = proxy.onNextCommit(verdict);
        const followed = Promise.withResolvers<{ result: unknown; tookMs: number }>();
        const follow = () => followed.resolve(timed(ledger.results([ada.subtract(5)])));
        const writing = ledger.store.write([ada.subtract(30)], follow);
        const first = await timed(writing.then((outcomes) => outcomes.map(resultOf)));
        await proxySawCommit(struck);
        const second = await followed.promise;
        const limit = verdict.endsWith('swallow') ? ANSWER_MS + CONNECT_MS : 0;
        for (const { result, tookMs } of [first, second]) {
          assert.deepEqual(result, [ACCEPTED]);
          assert(tookMs < limit + SLACK_MS, `it took ${tookMs} ms`);
        }
        // The second batch was sent before the first had an outcome, so either may be stored first.
        const history = await historyOf(ledger, ada);
        assert.deepEqual(history.toSorted(), ['+100 add', '-30 subtract', '-5 subtract']);
      }),
    );
  }

  for (const [dropped, verdict] of [
    ['a COMMIT to PostgreSQL', 'swallow'],
    ["PostgreSQL's reply to a COMMIT", 'pass, then swallow'],
  ] as const) {
    test(
      `if the network drops ${dropped} and all data after it, the outcome of the write is unknown`,
      LIMIT,
      (t: TestContext) =>
        withNetwork(t, async ({ ledger, proxy, ada }) => {
          const struck = proxy.onNextCommit(verdict).then(() => setImmediate(() => proxy.swallowAll()));
          const { result, tookMs } = await timed(ledger.write([ada.subtract(30)]));
          await proxySawCommit(struck);
          assert.equal(result, 'OutcomeUnknown');
          assert(tookMs < ANSWER_MS + OUTCOME_MS + SLACK_MS, `it took ${tookMs} ms`);
          await worksAgain(ledger, proxy, ada);
          const happened = (await historyOf(ledger, ada)).filter((entry) => entry === '-30 subtract');
          assert.equal(happened.length, verdict === 'swallow' ? 0 : 1);
        }),
    );
  }

  test(
    'if no data gets through to PostgreSQL, writes and reads fail in time and without effect',
    LIMIT,
    (t: TestContext) =>
      withNetwork(t, async ({ ledger, proxy, ada }) => {
        proxy.swallowAll();
        const [write, read, page] = await Promise.all([
          timed(ledger.write([ada.subtract(30)])),
          timed(ledger.load(ada.key)),
          timed(ledger.transactions(ada.key)),
        ]);
        for (const { result, tookMs } of [write, read, page]) {
          assert.equal(result, 'StoreUnavailable');
          assert(tookMs < ANSWER_MS + CONNECT_MS + SLACK_MS, `it took ${tookMs} ms`);
        }
        assert.notEqual(ledger.trouble(), null);
        await worksAgain(ledger, proxy, ada);
        assert.deepEqual(await historyOf(ledger, ada), ['-1 subtract', '+100 add']);
        await eventually(() => ledger.trouble() === null, 'the trouble is over');
      }),
  );

  test('on a slow network to PostgreSQL, writes and reads take longer but succeed', LIMIT, (t: TestContext) =>
    withNetwork(t, async ({ ledger, proxy, ada }) => {
      proxy.delayMs = 100;
      assert.deepEqual(await ledger.results([ada.subtract(30)]), [ACCEPTED]);
      assert.equal(await balanceOf(ledger, ada), 70);
      proxy.delayMs = 0;
    }),
  );
});

test(
  'if connections to PostgreSQL are cut at random, no acknowledged write is lost or stored twice',
  LIMIT,
  (t: TestContext) =>
    withNetwork(t, async ({ ledger, direct, proxy }) => {
      const history = new History(2);
      const load = startLoad(ledger.store, history);
      let cuts = 0;
      while (cuts < CUTS) {
        if (proxy.cutOne()) cuts += 1;
        await sleep(randomInt(30));
      }
      await load.acknowledged(100);
      await load.stop();
      assert.deepEqual(await history.faultsOf(ledger.store, direct), []);
      assert.equal(
        history.count('OutcomeUnknown'),
        0,
        'the server is up, so the outcome of each lost COMMIT can be determined',
      );
      t.diagnostic(`${cuts} cuts: ${history.summary}`);
    }),
);

/** Repairs the network for new connections only: the store must replace its old connections. */
async function worksAgain(ledger: TestLedger, proxy: TcpProxy, user: EndUser): Promise<void> {
  proxy.heal();
  const { result, tookMs } = await timed(ledger.results([user.subtract(1)]));
  assert.deepEqual(result, [ACCEPTED]);
  assert(tookMs < ANSWER_MS + SLACK_MS, `it took ${tookMs} ms`);
  await ledger.load(user.key);
}
