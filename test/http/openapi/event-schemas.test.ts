// Tests that events of all types match their schemas in the OpenAPI document and have no undocumented members.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openAccountDatabase } from '../../../src/open-store.ts';
import { EVENT_TYPES } from '../../../src/store/event-log.ts';
import { type EventBody, eventsOf } from '../read-events.ts';
import { type Scrip, someone, startScrip } from '../running-service.ts';
import { documentOf, validatorsOf } from './described-service.ts';

let scrip: Scrip;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-events-'));
  const path = join(folder, 'ledger.db');
  scrip = await startScrip({ testClock: true, file: path });
  await using database = await openAccountDatabase({ kind: 'file', path });
  const accounts = await database.queries.selectFrom('accounts').select('account').execute();
  for (const { account } of accounts)
    await database.queries.insertInto('thresholds').values({ account, below: '20%', created_at: 0 }).execute();
});
after(async () => {
  await scrip.stop();
  await rm(folder, { recursive: true, force: true });
});

async function write(path: string, fields: Readonly<Record<string, unknown>>) {
  const reply = await scrip.post(path, fields);
  assert.equal(reply.status, 200, reply.text);
  return { ...reply.body, transactionId: reply.headers['transaction-id'] as string };
}

const advance = (days: number) => write('/test-clock', { advance_days: days });

async function causeAllEvents(): Promise<void> {
  const [end_user_id, member] = [someone(), someone()];
  await write('/add', { end_user_id, amount: 100, validity_days: 14 });
  await write('/subtract', { end_user_id, amount: 85 });
  const { transactionId: transaction_id } = await write('/subtract', { end_user_id, amount: 15 });
  await write('/refund', { end_user_id, transaction_id, amount: 10 });
  await write('/start-cycle', { end_user_id: member, amount: 1_000, rollover_max: 100 });
  const { hold_id } = await write('/hold', { end_user_id: member, amount: 50 });
  await write('/capture', { end_user_id: member, hold_id, amount: 30 });
  await write('/hold', { end_user_id: member, amount: 20 });
  await advance(15);
  await write('/refund', { end_user_id, transaction_id, amount: 3 });
  await write('/refund', { end_user_id, transaction_id, amount: 2, validity_days: 9 });
  await advance(17);
  await write('/stop-cycle', { end_user_id: member });
  await advance(32);
}

test('events of all types match their schemas in the OpenAPI document and have no undocumented members', async () => {
  await causeAllEvents();
  const seen: EventBody[] = [];
  const missing = () => EVENT_TYPES.filter((type) => !seen.some((event) => event.type === type));
  for (let count = 20; missing().length > 0; count++) {
    seen.splice(0, seen.length, ...(await eventsOf(scrip, count)));
  }
  const validator = validatorsOf(await documentOf(scrip));
  const validate = validator({ $ref: '#/components/schemas/Event' });
  for (const event of seen) {
    assert(validate(event), `${JSON.stringify(event)}: ${JSON.stringify(validate.errors)}`);
    assert(!validate({ ...event, data: { ...event.data, extra: 1 } }), `control: ${event.type} with a further member`);
    const { balance: _, ...incomplete } = event.data;
    assert(!validate({ ...event, data: incomplete }), `control: ${event.type} without its balance`);
  }
});

test('the event of a refund shows how many credits can be spent again and how many have expired', async () => {
  const refunds = (await eventsOf(scrip, 20)).filter(({ type }) => type === 'credits.refunded');
  assert.deepEqual(
    refunds.map(({ data }) => [data.amount, data.expired]),
    [
      [10, 0],
      [0, 3],
      [2, 0],
    ],
  );
});
