// Tests which buckets form a part on Citus, and which lane writes to each part.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUCKETS, bucketOf } from '../rows/key.ts';
import { placementOn } from './citus.ts';

const SHARDS = Array.from({ length: BUCKETS }, (_, bucket) => (bucket === 0 || bucket === 2 ? '102008' : '102009'));

test('on Citus, a part consists of the buckets that share a shard, and is named after the shard', () => {
  const { parts } = placementOn(SHARDS);
  assert.deepEqual(
    parts.map(({ name, bucket }) => [name, bucket]),
    [
      ['shard 102008', 0],
      ['shard 102009', 1],
    ],
  );
  assert.equal(parts[0]?.within('c'), ' AND c.bucket IN (0, 2)');
});

test('on Citus, all end users of a shard are in one part and write through one lane', () => {
  const { parts, partOf, partOfBucket, lanes } = placementOn(SHARDS);
  const { count, atOnce, of } = lanes(3);
  assert.deepEqual([count, atOnce], [2, 3]);
  for (let index = 0; index < 1_000; index++) {
    const user = { account: index, endUser: 'ada' };
    const expected = parts[[0, 2].includes(bucketOf(user)) ? 0 : 1];
    assert.equal(partOf(user), expected);
    assert.equal(partOfBucket(bucketOf(user)), expected);
    assert.equal(parts[of(user)], expected);
  }
});
