// Tests that a search for work leaves out unreachable shards in each of its tables: if one table of a statement is not
// limited, Citus sends the statement to all shards, and it fails as long as one worker is down.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dueBuckets } from './events.ts';
import { partsInFeed } from './feed.ts';

const reachable = (table: string) => ` AND ${table}.bucket IN (1, 2)`;

for (const [name, { text }] of Object.entries({
  'parts in the feed': partsInFeed('events', reachable),
  'due end users': dueBuckets(0, reachable),
}))
  test(`the search for ${name} limits each of its tables to the reachable shards`, () => {
    const tables = text.match(/\bscrip\.\w+/g) ?? [];
    assert(tables.length > 0);
    assert.equal(text.match(/bucket IN \(1, 2\)/g)?.length, tables.length);
  });
