// Tests which buckets form a part on Citus, which lane writes to each part, and how a small number of rows is inserted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUCKETS, bucketOf } from '../rows/key.ts';
import { batchStatementsOf } from '../writer/batch-statements.ts';
import { insertFewSql, placementOn } from './citus.ts';
import { EVERYTHING, type Part } from './placement.ts';

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

test('the parameters of an INSERT of a few rows are the values of the first row, then of the second row, and so on', () => {
  const types = ['smallint', 'integer', 'uuid', 'text', 'smallint'];
  assert.equal(
    insertFewSql('notes', 'note, line', types, 'k.note, coalesce(k.line, 0)', 2),
    `INSERT INTO scrip.notes (bucket, account, end_user, note, line) VALUES ${[
      '($1::smallint, $2::integer, $3::uuid, $4::text, coalesce($5::smallint, 0))',
      '($6::smallint, $7::integer, $8::uuid, $9::text, coalesce($10::smallint, 0))',
    ].join(', ')}`,
  );
});

test('on Citus, up to 16 rows are inserted with VALUES, and more rows with a SELECT; in a single database, any number of rows is inserted with a SELECT', () => {
  const queryOf = (part: Part, count: number) => {
    const { openHolds } = batchStatementsOf(part);
    const rows = openHolds.rows();
    for (let row = 0; row < count; row++) rows.add(part.bucket, 1, 'ada', row, 'hold', '[]');
    return openHolds.query(rows);
  };
  const [even, odd] = placementOn(SHARDS).parts as [Part, Part];
  const few = queryOf(even, 16);
  assert.match(few.text, / VALUES \(\$1::smallint, /);
  assert.deepEqual(few.values.slice(-6), [0, 1, 'ada', 15, 'hold', '[]']);
  assert.equal(queryOf(odd, 16).name, few.name, 'all shards use the same prepared statement');
  for (const query of [queryOf(even, 17), queryOf(EVERYTHING, 1)]) {
    assert.match(query.text, / SELECT .* unnest\(/s);
    assert.equal(query.values.length, 6);
  }
});
