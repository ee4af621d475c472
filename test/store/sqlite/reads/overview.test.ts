// Tests that the overview does not claim to be complete while renewals that were stored late are not counted yet.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import { EndUser, NOON, temporaryFile } from '../../temporary-ledger.ts';
import { openInPlace } from '../sqlite-ledger.ts';

test('the overview is complete only up to the earliest posting that is not counted yet, even if later postings are in the journal before it', async (t) => {
  const ledger = await openInPlace(t, temporaryFile(), { wall: NOON });
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  await ledger.write([ada.startCycle(10, 1)]);
  await ledger.consumeFeed();
  ledger.wall += 3 * DAY_MS;
  await ledger.write([bob.add(5), ada.settle()]);
  const asOf = async () => (await ledger.console.overview(1, { days: 7 })).asOf;
  assert.equal(await asOf(), NOON + DAY_MS - 1);
  await ledger.consumeFeed();
  assert.equal(await asOf(), ledger.wall);
});
