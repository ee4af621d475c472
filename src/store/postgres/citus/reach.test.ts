// Tests, on a simulated cluster, what happens to batches and searches if shards cannot be reached.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import type { Query } from '../pool/connection.ts';
import { BUCKETS } from '../rows/key.ts';
import { placementOn } from './citus.ts';
import { SINGLE_DATABASE } from './placement.ts';
import { Reach } from './reach.ts';

const PLACEMENT = placementOn(Array.from({ length: BUCKETS }, (_, bucket) => (bucket % 2 === 0 ? 'even' : 'odd')));
const [EVEN, ODD] = PLACEMENT.parts as [(typeof PLACEMENT.parts)[0], (typeof PLACEMENT.parts)[0]];

function fromServer(code: string): DatabaseError {
  return Object.assign(new DatabaseError('connection to the remote node failed', 0, 'error'), { code });
}

function clusterOf(t: TestContext, placement = PLACEMENT) {
  const cluster = { now: 100_000, code: '08006', down: new Set<string>(), probes: 0 };
  t.mock.method(performance, 'now', () => cluster.now);
  const send = async (queries: readonly Query[]) => {
    cluster.probes += 1;
    const text = queries.map((query) => query.text).join();
    for (const { name, bucket } of placement.parts)
      if (cluster.down.has(name) && text.includes(`bucket = ${bucket} `)) throw fromServer(cluster.code);
    return [];
  };
  const reach = new Reach({ send, end: async () => {} }, placement);
  const lookUp = () =>
    reach.lookUp(async (reachable) => {
      const condition = reachable('c');
      const used = placement.parts.filter(({ bucket }) => condition === '' || condition.includes(`(${bucket},`));
      if (used.some(({ name }) => cluster.down.has(name))) throw fromServer(cluster.code);
      return used.map(({ name }) => name);
    });
  return Object.assign(cluster, { reach, lookUp });
}

for (const code of ['08006', '57014', 'XX000'])
  test(`if a search fails with ${code} because a worker cannot be reached, it is repeated without the shards of that worker`, async (t) => {
    const cluster = clusterOf(t);
    assert.deepEqual(await cluster.lookUp(), ['shard even', 'shard odd']);
    cluster.code = code;
    cluster.down.add('shard odd');
    assert.deepEqual(await cluster.lookUp(), ['shard even']);
    assert.deepEqual(cluster.reach.unavailable(), [ODD]);
    assert.deepEqual(await cluster.lookUp(), ['shard even']);
  });

test('if a search fails for a reason other than an unreachable worker, it is not repeated, and no shard counts as unreachable', async (t) => {
  const cluster = clusterOf(t);
  const failing = cluster.reach.lookUp(() => Promise.reject(fromServer('42P01')));
  await assert.rejects(failing, /remote node/);
  assert.deepEqual([cluster.probes, cluster.reach.unavailable()], [0, []]);
});

test('batches for an unreachable shard fail with a message that names the shard, and batches for other shards do not fail', (t) => {
  const { reach } = clusterOf(t);
  const fault = reach.lost(ODD, fromServer('08006'));
  assert.deepEqual([fault.code, fault.isPartial], ['StoreUnavailable', true]);
  assert.match(fault.message, /^shard odd cannot be reached: /);
  assert.equal(reach.faultOf(ODD)?.message, fault.message);
  assert.equal(reach.faultOf(EVEN), null);
});

test('an unreachable shard is probed once a second, and is used again after a probe has succeeded', async (t) => {
  const cluster = clusterOf(t);
  cluster.down.add('shard odd');
  await cluster.lookUp();
  const { probes } = cluster;
  cluster.now += 999;
  await cluster.lookUp();
  assert.equal(cluster.probes, probes);
  cluster.now += 1;
  assert.deepEqual(await cluster.lookUp(), ['shard even']);
  assert.equal(cluster.probes, probes + 1);
  cluster.down.clear();
  cluster.now += 1_000;
  assert.deepEqual(await cluster.lookUp(), ['shard even', 'shard odd']);
  assert.equal(cluster.reach.faultOf(ODD), null);
});

test('the SQL of a search in some buckets has a single list of buckets, which leaves out the buckets of unreachable shards', async (t) => {
  const cluster = clusterOf(t);
  const listOf = () => cluster.reach.lookUp(async (reachable) => reachable('c', [1, 2, 3, 4]));
  assert.equal(await listOf(), ' AND c.bucket IN (1, 2, 3, 4)');
  cluster.down.add('shard odd');
  await cluster.reach.suspect();
  assert.equal(await listOf(), ' AND c.bucket IN (2, 4)');
  cluster.down.add('shard even');
  await cluster.reach.suspect();
  assert.equal(await listOf(), ' AND false');
});

test('reads of an unreachable shard fail immediately, and reads of other shards do not', async (t) => {
  const cluster = clusterOf(t);
  cluster.down.add('shard odd');
  const hanging = cluster.reach.read(ODD, () => Promise.reject(new Error('No answer within 5000 ms')));
  await assert.rejects(hanging, /No answer/);
  await cluster.reach.suspect();
  const notSent = () => assert.fail('the read is not sent');
  await assert.rejects(cluster.reach.read(ODD, notSent), { code: 'StoreUnavailable', isPartial: true });
  assert.equal(await cluster.reach.read(EVEN, async () => 'read'), 'read');

  cluster.down.clear();
  cluster.now += 1_000;
  await assert.rejects(cluster.reach.read(ODD, notSent), { code: 'StoreUnavailable' });
  await setImmediate();
  assert.equal(await cluster.reach.read(ODD, async () => 'read'), 'read', 'the refused read has started a probe');
});

test('in a single database, a search that cannot reach the server fails', async (t) => {
  const cluster = clusterOf(t, SINGLE_DATABASE);
  cluster.down.add('the database');
  await assert.rejects(cluster.lookUp(), /remote node/);
  assert.deepEqual([cluster.probes, cluster.reach.unavailable()], [0, []]);
});
