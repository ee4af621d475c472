// Tests the events of a copied ledger: the copy derives no events from the copied history, but it derives
// all later events.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { copyDatabase } from '../../../src/open-tools.ts';
import type { LoggedEvent } from '../../../src/store/event-log.ts';
import { byHand, forgetEvents, readByHand } from '../outside.ts';
import { openInPlace } from '../sqlite/sqlite-ledger.ts';
import { NOON, PEOPLE, temporaryFile } from '../temporary-ledger.ts';
import { at, fileAt, makeLedger, quietly } from './copied-ledger.ts';

/** The end of the history that `makeLedger` creates. */
const END = NOON + 21 * DAY_MS;

async function eventsAt(t: TestContext, file: string, wall: number): Promise<LoggedEvent[]> {
  const ledger = await openInPlace(t, file, { wall });
  await ledger.write(Object.values(PEOPLE).map((user) => user.settle()));
  await ledger.deriveEvents();
  const pages = await Promise.all([1, 2].map((account) => ledger.events.page(account, { after: null, limit: 1_000 })));
  await ledger.close();
  return pages.flatMap(({ events }) => events);
}

function textsOf(events: readonly LoggedEvent[]): string[] {
  return events.map(({ id, type, at, data }) => `${id} ${type} ${at} ${data}`).sort();
}

test('a copy derives no events from the copied history, but derives the same later events as its source', async (t) => {
  const { file } = await makeLedger();
  forgetEvents(file);
  byHand(file, 'UPDATE accounts SET expiring_days = 30 WHERE account = 1');
  byHand(file, "INSERT INTO thresholds VALUES (1, '20', 1)");
  const copy = temporaryFile();
  await copyDatabase(at(fileAt(file)), at(fileAt(copy)), quietly);
  assert.deepEqual(await eventsAt(t, copy, END), []);
  const before = await eventsAt(t, file, END);
  assert(before.length > 20);
  const after = (await eventsAt(t, file, END + 40 * DAY_MS)).filter(({ id }) => !before.some((each) => each.id === id));
  assert(after.some(({ type }) => type === 'credits.expiring') && after.some(({ type }) => type === 'balance.low'));
  assert.deepEqual(textsOf(await eventsAt(t, copy, END + 40 * DAY_MS)), textsOf(after));
});

test('a copy derives no events for 250 cycles that ended before the copy was made', async (t) => {
  const file = temporaryFile();
  const ledger = await openInPlace(t, file, { wall: NOON });
  for (let days = 1; days <= 250; days++) await ledger.write([PEOPLE.oneTime.add(10, days)]);
  await ledger.close();
  const later = NOON + 300 * DAY_MS;
  const reopened = await openInPlace(t, file, { wall: later });
  await reopened.write([PEOPLE.rich.add(10)]);
  await reopened.close();
  const copy = temporaryFile();
  await copyDatabase(at(fileAt(file)), at(fileAt(copy)), quietly);
  const opened = await openInPlace(t, copy, { wall: later });
  await opened.deriveEvents();
  assert.deepEqual((await opened.events.page(1, { after: null, limit: 10 })).events, []);
  await opened.close();
});

test('a copy keeps thresholds and webhook endpoints, but not the positions and leases of the endpoints', async () => {
  const { file } = await makeLedger();
  byHand(file, "INSERT INTO thresholds VALUES (1, '20', 7), (1, '20%', 8)");
  byHand(
    file,
    `INSERT INTO webhook_endpoints (endpoint_id, account, url, types, secret, created_at, created_by, position, leased_by)
     VALUES (4, 1, 'https://example.com/', 'balance.low', 'encrypted', 9, 'operator', '17', 'a process')`,
  );
  const copy = temporaryFile();
  await copyDatabase(at(fileAt(file)), at(fileAt(copy)), quietly);
  assert.deepEqual(readByHand(copy, 'SELECT * FROM thresholds'), readByHand(file, 'SELECT * FROM thresholds'));
  const endpoint = 'SELECT endpoint_id, account, url, types, secret, created_at, created_by FROM webhook_endpoints';
  assert.deepEqual(readByHand(copy, endpoint), readByHand(file, endpoint));
  const delivery = 'SELECT position, leased_by, leased_until FROM webhook_endpoints';
  assert.deepEqual(
    readByHand(copy, delivery).map((row) => ({ ...row })),
    [{ position: null, leased_by: null, leased_until: 0 }],
  );
});
