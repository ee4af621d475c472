// Tests refunds through the API: credits return to the cycles that they came from.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { assertProblem, MovableClock, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let scrip: Scrip;
before(async () => {
  scrip = await startScrip({ clock });
});
after(async () => {
  await scrip.assertConsistent();
  await scrip.stop();
});

async function userWith(...amounts: readonly number[]): Promise<string> {
  const user = someone();
  for (const [index, amount] of amounts.entries()) {
    await scrip.post('/add', { end_user_id: user, amount, validity_days: index + 1 });
    clock.advance(1);
  }
  return user;
}

async function subtract(user: string, amount: number): Promise<string> {
  const reply = await scrip.post('/subtract', { end_user_id: user, amount });
  assert.equal(reply.status, 200, reply.text);
  return reply.headers['transaction-id'] as string;
}

const refund = (user: string, transaction_id: string, more: Record<string, unknown> = {}): Promise<Reply> =>
  scrip.post('/refund', { end_user_id: user, transaction_id, ...more });

const amountsOf = async (user: string) =>
  (await scrip.balance(user)).active_balance_by_cycle.map(({ amount }) => amount);

test('a partial refund returns the most recently spent credits first, as if the subtraction had been smaller', async () => {
  const user = await userWith(10, 20, 30);
  const spent = await subtract(user, 35);
  assert.deepEqual(await amountsOf(user), [0, 0, 25]);
  const { body, headers } = await refund(user, spent.toUpperCase(), { amount: 12 });
  const transaction_id = headers['transaction-id'] as string;
  assert.deepEqual(body, { end_user_id: user, transaction_id, amount: 12, expired: 0 });
  assert.deepEqual(await amountsOf(user), [0, 7, 30], 'as after a subtraction of 23');
  const [listed] = await scrip.transactions(user);
  assert.deepEqual([listed?.transaction_id, listed?.amount], [transaction_id, 12]);
});

test('a refund without an amount returns all credits that have not been refunded yet', async () => {
  const user = await userWith(100);
  const spent = await subtract(user, 30);
  assert.equal((await refund(user, spent, { amount: 10 })).body.amount, 10);
  assert.equal((await refund(user, spent)).body.amount, 20);
  assert.deepEqual(await amountsOf(user), [100]);
});

test('a refund of more than the refundable credits gets 409 RefundTooLarge, which states how many credits were requested and how many are refundable', async () => {
  const user = await userWith(100);
  const spent = await subtract(user, 30);
  await refund(user, spent, { amount: 10 });
  const reply = await refund(user, spent, { amount: 21 });
  assertProblem(reply, 'RefundTooLarge', 409);
  assert.deepEqual([reply.body.requested, reply.body.refundable], [21, 20]);
  assert.equal(reply.headers['transaction-id'], undefined);
  await refund(user, spent);
  const nothingLeft = await refund(user, spent);
  assertProblem(nothingLeft, 'RefundTooLarge', 409);
  assert.deepEqual([nothingLeft.body.requested, nothingLeft.body.refundable], [undefined, 0]);
  assert.deepEqual(await amountsOf(user), [100]);
});

test('if a hundred full refunds of one transaction are sent at once, exactly one succeeds', async () => {
  const user = await userWith(100);
  const spent = await subtract(user, 30);
  const replies = await Promise.all(Array.from({ length: 100 }, () => refund(user, spent)));
  assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(99).fill(409)]);
  assert.deepEqual(await amountsOf(user), [100]);
});

test('a refund of a capture returns at most the credits that the capture spent, not all that were held', async () => {
  const user = await userWith(100);
  const { hold_id } = (await scrip.post('/hold', { end_user_id: user, amount: 50 })).body;
  const { body } = await scrip.post('/capture', { end_user_id: user, hold_id, amount: 32 });
  const tooMuch = await refund(user, body.transaction_id, { amount: 33 });
  assert.equal(tooMuch.body.refundable, 32);
  assert.equal((await refund(user, body.transaction_id)).body.amount, 32);
  assert.deepEqual(await amountsOf(user), [100]);
});

test('a refund of a transaction that spent no credits gets 409 NotRefundable', async () => {
  const user = await userWith(100);
  const idOf = async (path: string, fields: Record<string, unknown> = {}) => {
    const { headers } = await scrip.post(path, { end_user_id: user, ...fields });
    return headers['transaction-id'] as string;
  };
  const ids = [
    await idOf('/add', { amount: 5 }),
    await idOf('/start-cycle', { amount: 5 }),
    await idOf('/stop-cycle'),
    await idOf('/hold', { amount: 5 }),
  ];
  const hold_id = ids.at(-1);
  ids.push(await idOf('/release', { hold_id }));
  const spent = await subtract(user, 30);
  ids.push((await refund(user, spent, { amount: 1 })).body.transaction_id);
  for (const id of ids) assertProblem(await refund(user, id), 'NotRefundable', 409);
});

test('a refund of an unknown transaction, or of a transaction of another end user or account, gets 404 TransactionNotFound', async () => {
  const user = await userWith(100);
  const spent = await subtract(user, 30);
  assertProblem(await refund(user, someone()), 'TransactionNotFound', 404);
  assertProblem(await refund(await userWith(100), spent), 'TransactionNotFound', 404);
  const key = await scrip.createKey('Another', 'write');
  const foreign = await scrip.post('/refund', { end_user_id: user, transaction_id: spent }, { key });
  assertProblem(foreign, 'TransactionNotFound', 404);
});

test('a refund does not restore the credits of an ended cycle, but counts them as refunded', async () => {
  const user = await userWith(10, 20);
  const spent = await subtract(user, 25);
  clock.advance(DAY_MS);
  const { body } = await refund(user, spent);
  assert.deepEqual([body.amount, body.expired], [15, 10]);
  assert.deepEqual(await amountsOf(user), [20]);
  assert.equal((await refund(user, spent)).body.refundable, 0);
});

test('a refund with validity_days restores the credits of an ended cycle in a new one-time cycle', async () => {
  const user = await userWith(10, 20);
  const spent = await subtract(user, 25);
  clock.advance(DAY_MS);
  const { body } = await refund(user, spent, { validity_days: 7 });
  assert.deepEqual([body.amount, body.expired], [25, 0]);
  const [, added] = (await scrip.balance(user)).active_balance_by_cycle;
  assert.deepEqual([added?.amount, added?.starting_amount, added?.cycle_type], [10, 10, 'one-time']);
  assert.equal(added?.cycle_end, new Date(clock.now + 7 * DAY_MS).toISOString());
  assert.equal((await scrip.transactions(user))[0]?.amount, 25);
});

test('a refund of expired credits restores no credits, and is listed only with the filter kind=refund', async () => {
  const user = await userWith(10);
  const spent = await subtract(user, 10);
  clock.advance(DAY_MS);
  const { body } = await refund(user, spent);
  assert.deepEqual([body.amount, body.expired], [0, 10]);
  assert.equal((await scrip.transactions(user)).length, 2);
  const query = { end_user_id: user, kind: 'refund' };
  const { transactions } = (await scrip.get('/get-all-user-transactions', query)).body;
  assert.deepEqual(
    transactions.map(({ transaction_id, amount }) => [transaction_id, amount]),
    [[body.transaction_id, 0]],
  );
});

test('a refund that would exceed the maximum balance is refused', async () => {
  const user = await userWith(Number.MAX_SAFE_INTEGER);
  const spent = await subtract(user, 100);
  await scrip.post('/add', { end_user_id: user, amount: 60 });
  const reply = await refund(user, spent);
  assertProblem(reply, 'BalanceTooLarge', 422);
  assert.deepEqual([reply.body.requested, reply.body.available], [100, 40]);
  assert.equal((await refund(user, spent, { amount: 40 })).status, 200);
});
