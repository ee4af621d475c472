// Tests concurrent requests: no credit is spent twice or lost, and concurrent `/start-cycle` requests leave exactly one
// cycle active.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postText, RawConnection } from '../raw-connection.ts';
import { type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

function times<Result>(count: number, work: (index: number) => Result): Result[] {
  return Array.from({ length: count }, (_, index) => work(index));
}

function tally(replies: readonly Pick<Reply, 'status'>[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test('300 concurrent subtractions of 1, each on its own connection, spend exactly the 100 available credits', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 60 });
  await scrip.post('/add', { end_user_id: user, amount: 40 });
  const replies = await Promise.all(times(300, () => scrip.post('/subtract', { end_user_id: user, amount: 1 })));
  assert.deepEqual(tally(replies), { 200: 100, 402: 200 });
  assert.equal((await scrip.balance(user)).active_balance, 0);
  const transactions = await scrip.transactions(user);
  assert.equal(transactions.length, 102);
  assert.equal(new Set(transactions.map(({ transaction_id }) => transaction_id)).size, 102);
  await scrip.assertConsistent();
});

test('300 subtractions of 1, pipelined on one connection, spend exactly the 100 available credits', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 100 });
  const connection = await RawConnection.open(scrip);
  connection.send(postText(scrip, '/subtract', { end_user_id: user, amount: 1 }).repeat(300));
  assert.deepEqual(tally(await connection.answers(300)), { 200: 100, 402: 200 });
  assert.equal((await scrip.balance(user)).active_balance, 0);
  assert.equal((await scrip.transactions(user)).length, 101);
  await scrip.assertConsistent();
});

test('the responses to pipelined requests arrive in the order of the requests', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 1_000_000 });
  const connection = await RawConnection.open(scrip);
  const amounts = times(200, (index) => (index % 7 === 3 ? 0 : index + 1));
  connection.send(amounts.map((amount) => postText(scrip, '/subtract', { end_user_id: user, amount })).join(''));
  const answered = (await connection.answers(200)).map(({ status, body }) => (status === 200 ? body.amount : 0));
  assert.deepEqual(answered, amounts);
});

test('concurrent subtractions of different amounts never spend more than the balance', async () => {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount: 1_000 });
  const replies = await Promise.all(
    times(200, (index) => scrip.post('/subtract', { end_user_id: user, amount: 1 + (index % 23) })),
  );
  const spent = replies.filter(({ status }) => status === 200).reduce((sum, { body }) => sum + body.amount, 0);
  const { active_balance } = await scrip.balance(user);
  assert.equal(spent + active_balance, 1_000);
  for (const { body } of replies.filter(({ status }) => status === 402)) {
    assert(body.available < body.requested);
    assert.equal(body.shortfall, body.requested - body.available);
  }
  await scrip.assertConsistent();
});

test('each of 200 concurrent additions adds its credits', async () => {
  const user = someone();
  const replies = await Promise.all(
    times(200, (index) => scrip.post('/add', { end_user_id: user, amount: index + 1 })),
  );
  assert.deepEqual(tally(replies), { 200: 200 });
  const { active_balance, active_balance_by_cycle } = await scrip.balance(user);
  assert.equal(active_balance, 20_100);
  assert.equal(active_balance_by_cycle.length, 200);
  await scrip.assertConsistent();
});

test('exactly one of 100 concurrent /start-cycle requests creates a cycle, and the responses to the others contain that cycle', async () => {
  const user = someone();
  const replies = await Promise.all(
    times(100, (index) => scrip.post('/start-cycle', { end_user_id: user, amount: index + 1 })),
  );
  assert.deepEqual(tally(replies), { 200: 1, 409: 99 });
  const winner = replies.find(({ status }) => status === 200)?.body;
  for (const { body, status } of replies) if (status === 409) assert.deepEqual(body.cycle, winner);
  const { active_balance, active_balance_by_cycle } = await scrip.balance(user);
  assert.equal(active_balance, winner?.amount);
  assert.equal(active_balance_by_cycle.length, 1);
});

test('each of 50 concurrent /start-cycle requests with on_active=replace grants its credits once, and exactly one cycle is active afterwards', async () => {
  const user = someone();
  const replies = await Promise.all(
    times(50, () => scrip.post('/start-cycle', { end_user_id: user, amount: 10, on_active: 'replace' })),
  );
  assert.deepEqual(tally(replies), { 200: 50 });
  const { active_balance, active_balance_by_cycle } = await scrip.balance(user);
  assert.equal(active_balance, 500);
  assert.deepEqual(
    active_balance_by_cycle.map(({ status }) => status),
    [...times(49, () => 'canceled'), 'active'],
  );
  await scrip.assertConsistent();
});

test('concurrent /stop-cycle requests return the same canceled cycle', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 10 });
  const replies = await Promise.all(times(20, () => scrip.post('/stop-cycle', { end_user_id: user })));
  assert.equal(new Set(replies.map(({ text }) => text)).size, 1);
  assert.equal(replies[0]?.body.status, 'canceled');
});

test('a read that is sent after the response to a write returns the state after the write', async () => {
  const user = someone();
  for (let amount = 1; amount <= 30; amount++) {
    await scrip.post('/add', { end_user_id: user, amount: 1 });
    const [balance, transactions] = await Promise.all([scrip.balance(user), scrip.transactions(user)]);
    assert.deepEqual([balance.active_balance, transactions.length], [amount, amount]);
  }
});

test('concurrent requests for different end users do not affect each other', async () => {
  const users = times(50, someone);
  await Promise.all(users.map((user, index) => scrip.post('/add', { end_user_id: user, amount: index + 1 })));
  const replies = await Promise.all(
    times(500, (index) => scrip.post('/subtract', { end_user_id: users[index % 50], amount: 5 })),
  );
  const expected = users.reduce((sum, _, index) => sum + Math.min(10, Math.floor((index + 1) / 5)), 0);
  assert.equal(tally(replies)[200], expected);
  await scrip.assertConsistent();
});
