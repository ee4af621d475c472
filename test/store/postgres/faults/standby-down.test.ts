// Tests the service under load while a synchronous standby is down for a long time, and after the standby has returned.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CommitResult, GroupCommit } from '../../../../src/batching/group-commit.ts';
import { eventually } from '../../../http/running-service.ts';
import { ACCEPTED, EndUser, keyed, replayed } from '../../temporary-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import type { PostgresServer } from '../postgres-server.ts';
import { LANES, replicateSynchronously, startPair } from './replicated-pair.ts';

const POOLED_MAX = 8 + 2 * LANES;
/**
 * Each lane may have one more connection, whose COMMIT timed out but still waits for the standby (see docs/scaling.md).
 */
const CONNECTIONS_MAX = POOLED_MAX + LANES;

/**
 * The sum of three timeouts: for a COMMIT (5 s), for the search for its outcome (8 s), and for the last lookup in this
 * search (2 s).
 */
const FIRST_MS = 5_000 + 8_000 + 2_000;
/** Twice the COMMIT timeout: long enough to detect whether a later batch waits for the standby again. */
const LATER_MS = 2 * 5_000;
const QUICK_MS = 1_000;
/** Half of the time of the search: long enough to detect whether requests wait for the search. */
const SEARCHING_MS = 4_000;

const closing: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

async function connectionsOf(primary: PostgresServer): Promise<number> {
  const { rows } = await primary.query(
    `SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = 'scrip'`,
  );
  return rows[0].count;
}

interface Asked {
  readonly code: string;
  readonly beganMs: number;
  readonly tookMs: number;
}

/** Adds credits only to new end users, because no earlier write can hold a lock on their rows. */
function startNewcomers(commit: GroupCommit): { readonly asked: readonly Asked[]; stop(): Promise<void> } {
  const asked: Asked[] = [];
  let count = 0;
  let isStopped = false;
  const ask = async () => {
    while (!isStopped) {
      const began = performance.now();
      count += 1;
      const user = new EndUser(2, count);
      const result = await new Promise<CommitResult>((resolve) => commit.submit(user.add(1), resolve));
      const code = 'code' in result ? result.code : 'accepted';
      asked.push({ code, beganMs: began, tookMs: performance.now() - began });
      await sleep(50);
    }
  };
  const working = Promise.all(Array.from({ length: 4 * LANES }, ask));
  return {
    asked,
    async stop() {
      isStopped = true;
      await working;
    },
  };
}

test('while a synchronous PostgreSQL standby is unavailable for a long time, connections do not pile up', {
  timeout: 90_000,
}, async (t) => {
  const { primary, standby, ledger, url } = await startPair(closing);
  const { store } = ledger;
  await replicateSynchronously(primary);
  const history = new History();
  const commit = new GroupCommit(store);
  const load = startLoad(store, history, commit);
  const newcomers = startNewcomers(commit);
  t.after(() => Promise.all([load.stop(), newcomers.stop()]));
  await load.acknowledged(200, 10_000);
  await standby.down('fast');
  let most = 0;
  const lookFor = async (ms: number, isOver: () => boolean = () => false) => {
    const began = performance.now();
    while (performance.now() - began < ms && !isOver()) {
      most = Math.max(most, await connectionsOf(primary));
      await sleep(100);
    }
  };
  let troubledMs = Number.POSITIVE_INFINITY;
  let isAnswered = false;
  void load.stop().then(() => {
    isAnswered = true;
  });
  await lookFor(FIRST_MS, () => {
    if (store.trouble() !== null) troubledMs = Math.min(troubledMs, performance.now());
    return isAnswered;
  });
  assert(isAnswered, 'writes in flight when the standby stopped are answered in time');
  const answered = performance.now();
  await lookFor(LATER_MS, () => store.trouble() === null);
  assert.notEqual(store.trouble(), null, 'the store still reports the trouble');
  const late = newcomers.asked.filter(({ beganMs }) => beganMs > answered);
  const searching = newcomers.asked.filter(({ beganMs }) => beganMs > troubledMs && beganMs <= answered);
  const slowest = Math.max(...late.map(({ tookMs }) => tookMs));
  const slowestSearching = Math.max(...searching.map(({ tookMs }) => tookMs));
  t.diagnostic(
    `${most} connections at most; ${searching.length} and ${late.length} responses, the slowest after ${Math.round(slowestSearching)} and ${Math.round(slowest)} ms`,
  );
  assert(most <= CONNECTIONS_MAX, `there were ${most} connections`);
  assert(late.length > 100, `${late.length} late requests`);
  assert.deepEqual([...new Set(late.map(({ code }) => code))], ['StoreUnavailable']);
  assert(slowest < QUICK_MS, `the slowest took ${slowest} ms`);
  assert(searching.length > 100, `${searching.length} requests during the search for the outcomes`);
  assert(slowestSearching < SEARCHING_MS, `the slowest took ${slowestSearching} ms`);

  await standby.up();
  const again = startLoad(store, history, commit);
  t.after(() => again.stop());
  await again.acknowledged(200, 5_000);
  await Promise.all([again.stop(), newcomers.stop()]);
  assert.deepEqual(await history.faultsOf(store, url), []);
  await eventually(async () => (await connectionsOf(primary)) <= POOLED_MAX, 'the waiting connections are closed');
  await eventually(() => store.trouble() === null, 'the trouble is over');
  t.diagnostic(history.summary);
});

test('while a synchronous PostgreSQL standby is unavailable, a repeated request gets no replayed response', {
  timeout: 60_000,
}, async () => {
  const { primary, standby, ledger } = await startPair(closing);
  await replicateSynchronously(primary);
  const user = new EndUser(1, 1);
  const add = (requestId: string) => ledger.write([keyed(user.add(10), 'payment', requestId)]);
  await add('1');
  await standby.down('fast');
  // No COMMIT has timed out yet, so the store does not know that the standby is away.
  await assert.rejects(add('2'), { name: 'StoreFault' });
  await standby.up();
  await eventually(async () => ledger.store.trouble() === null, 'the trouble is over');
  assert.deepEqual(await ledger.results([keyed(user.add(10), 'payment', '3')]), [replayed(ACCEPTED, '1')]);
});
