// Tests holds through the API: capture, release and lapse.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HOLD_SECONDS_DEFAULT, OPEN_HOLDS_MAX } from '../../../src/ledger/hold.ts';
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

async function userWith(amount: number, validity_days = 31): Promise<string> {
  const user = someone();
  await scrip.post('/add', { end_user_id: user, amount, validity_days });
  return user;
}

async function hold(user: string, amount: number, more: Record<string, unknown> = {}): Promise<Reply> {
  const reply = await scrip.post('/hold', { end_user_id: user, amount, ...more });
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

const capture = (user: string, hold_id: string, more: Record<string, unknown> = {}) =>
  scrip.post('/capture', { end_user_id: user, hold_id, ...more });
const release = (user: string, hold_id: string) => scrip.post('/release', { end_user_id: user, hold_id });

async function balanceOf(user: string): Promise<readonly [balance: number, held: number | undefined]> {
  const { active_balance, held } = await scrip.balance(user);
  return [active_balance, held];
}

const openHolds = async (user: string) => (await scrip.get('/get-holds', { end_user_id: user })).body.holds;

test('a hold reduces the active balance and the amount of its cycle, and the balance shows how many credits are held', async () => {
  const user = await userWith(100);
  const { body, headers } = await hold(user, 30);
  const { hold_id } = body;
  assert.equal(headers['transaction-id'], hold_id);
  const created_at = new Date(clock.now).toISOString();
  const expires_at = new Date(clock.now + HOLD_SECONDS_DEFAULT * 1_000).toISOString();
  const open = { hold_id, amount: 30, created_at, expires_at, status: 'open' };
  assert.deepEqual(body, { end_user_id: user, ...open });
  assert.deepEqual(await openHolds(user), [open]);
  const balance = await scrip.balance(user);
  assert.deepEqual([balance.active_balance, balance.held], [70, 30]);
  assert.deepEqual(
    balance.active_balance_by_cycle.map(({ amount, starting_amount }) => [amount, starting_amount]),
    [[70, 100]],
  );
  assert.equal((await scrip.transactions(user)).length, 1, 'the list of transactions does not contain the hold');
});

test('held credits cannot be spent or held again', async () => {
  const user = await userWith(100);
  await hold(user, 30);
  for (const path of ['/subtract', '/hold']) {
    const reply = await scrip.post(path, { end_user_id: user, amount: 71 });
    assertProblem(reply, 'InsufficientFunds', 402);
    assert.deepEqual([reply.body.requested, reply.body.available, reply.body.shortfall], [71, 70, 1]);
    assert.match(reply.body.detail, path === '/hold' ? /Nothing was held\.$/ : /Nothing was subtracted\.$/);
  }
  assert.deepEqual(await balanceOf(user), [70, 30]);
});

test('a capture without an amount spends all credits of the hold', async () => {
  const user = await userWith(100);
  const { hold_id } = (await hold(user, 30)).body;
  const { body, headers } = await capture(user, hold_id.toUpperCase());
  const transaction_id = headers['transaction-id'] as string;
  const expected = { hold_id, transaction_id, amount: 30, returned: 0, expired: 0, status: 'captured' };
  assert.deepEqual(body, { end_user_id: user, ...expected });
  assert.deepEqual(await balanceOf(user), [70, undefined]);
  const [listed] = await scrip.transactions(user);
  assert.deepEqual(
    [listed?.transaction_id, listed?.amount],
    [transaction_id, -30],
    'a capture is listed like a subtraction',
  );
  assert.deepEqual(await openHolds(user), []);
});

test('a capture of less than the hold returns the rest to the balance, and a capture of more draws the difference from the balance', async () => {
  const user = await userWith(100);
  const less = await capture(user, (await hold(user, 30)).body.hold_id, { amount: 12 });
  assert.deepEqual([less.body.amount, less.body.returned, less.body.expired], [12, 18, 0]);
  assert.deepEqual(await balanceOf(user), [88, undefined]);
  const more = await capture(user, (await hold(user, 30)).body.hold_id, { amount: 88 });
  assert.deepEqual([more.body.amount, more.body.returned, more.body.expired], [88, 0, 0]);
  assert.deepEqual(await balanceOf(user), [0, undefined]);
});

test('a capture of more than the hold and the balance together is refused, and the hold stays open', async () => {
  const user = await userWith(100);
  const { hold_id } = (await hold(user, 30)).body;
  await hold(user, 60);
  const reply = await capture(user, hold_id, { amount: 41 });
  assertProblem(reply, 'InsufficientFunds', 402);
  assert.deepEqual([reply.body.requested, reply.body.available, reply.body.shortfall], [41, 40, 1]);
  assert.match(reply.body.detail, /the hold stays open/);
  assert.equal(reply.headers['transaction-id'], undefined, 'nothing was recorded');
  assert.deepEqual(await balanceOf(user), [10, 90]);
  assert.equal((await capture(user, hold_id, { amount: 40 })).status, 200);
});

test('a release returns all credits of a hold to the balance', async () => {
  const user = await userWith(100);
  const { hold_id } = (await hold(user, 30)).body;
  const { body, headers } = await release(user, hold_id.toUpperCase());
  const closed = { hold_id, amount: 30, returned: 30, expired: 0, status: 'released' };
  assert.deepEqual(body, { end_user_id: user, ...closed });
  assert.match(headers['transaction-id'] as string, /^[0-9a-f-]{36}$/);
  assert.deepEqual(await balanceOf(user), [100, undefined]);
  assert.equal((await scrip.transactions(user)).length, 1, 'the list of transactions does not contain the release');
});

for (const [seconds, ms] of [
  [undefined, 900_000],
  [null, 900_000],
  [1, 1_000],
  [2_592_000, 30 * DAY_MS],
] as const) {
  test(`a hold with expires_in_seconds ${seconds} lapses exactly ${ms} ms after its creation, and its credits return to the balance`, async () => {
    const user = await userWith(100, 60);
    const { body } = await hold(user, 30, seconds === undefined ? {} : { expires_in_seconds: seconds });
    assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), ms);
    clock.set(Date.parse(body.expires_at) - 1);
    assert.deepEqual(await balanceOf(user), [70, 30]);
    assert.equal((await openHolds(user)).length, 1);
    clock.advance(1);
    assert.deepEqual(await balanceOf(user), [100, undefined]);
    assert.deepEqual(await openHolds(user), []);
    assertProblem(await capture(user, body.hold_id), 'HoldNotFound', 404);
    assert.equal((await scrip.post('/subtract', { end_user_id: user, amount: 100 })).status, 200);
  });
}

test('a hold can be captured after its cycle has ended, and credits that are not captured expire', async () => {
  const user = await userWith(100, 1);
  await scrip.post('/add', { end_user_id: user, amount: 5, validity_days: 31 });
  const { hold_id } = (await hold(user, 50, { expires_in_seconds: 2 * 86_400 })).body;
  const other = (await hold(user, 20, { expires_in_seconds: 2 * 86_400 })).body.hold_id;
  clock.advance(DAY_MS);
  assert.deepEqual(await balanceOf(user), [5, 70]);
  const { body } = await capture(user, hold_id, { amount: 32 });
  assert.deepEqual([body.amount, body.returned, body.expired], [32, 0, 18]);
  const { body: released } = await release(user, other);
  assert.deepEqual([released.amount, released.returned, released.expired], [20, 0, 20]);
  assert.deepEqual(await balanceOf(user), [5, undefined]);
});

test('a capture or release gets 404 HoldNotFound if the hold is closed or unknown, or belongs to another end user or account', async () => {
  const user = await userWith(100);
  const captured = (await hold(user, 1)).body.hold_id;
  await capture(user, captured);
  const released = (await hold(user, 1)).body.hold_id;
  await release(user, released);
  const open = (await hold(user, 1)).body.hold_id;
  const addition = (await scrip.transactions(user)).at(-1)?.transaction_id as string;
  for (const hold_id of [captured, released, addition, someone()]) {
    assertProblem(await capture(user, hold_id), 'HoldNotFound', 404);
    assertProblem(await release(user, hold_id), 'HoldNotFound', 404);
  }
  const other = await userWith(100);
  const key = await scrip.createKey('Another', 'write');
  for (const path of ['/capture', '/release']) {
    assertProblem(await scrip.post(path, { end_user_id: other, hold_id: open }), 'HoldNotFound', 404);
    assertProblem(await scrip.post(path, { end_user_id: user, hold_id: open }, { key }), 'HoldNotFound', 404);
  }
  assert.equal((await openHolds(user)).length, 1);
});

test('lapses of the same instant that are not stored yet are on consecutive pages, each on one page', async () => {
  const user = await userWith(100);
  for (let made = 0; made < 5; made++) await hold(user, 1);
  clock.advance(DAY_MS);
  const seen: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const fields = { end_user_id: user, kind: 'lapse', limit: '1', ...(cursor === undefined ? {} : { cursor }) };
    const { status, body, text } = await scrip.get('/get-all-user-transactions', fields);
    assert.equal(status, 200, text);
    seen.push(...body.transactions.map(({ transaction_id }: { transaction_id: string }) => transaction_id));
    cursor = body.next_cursor;
  }
  assert.equal(new Set(seen).size, 5);
  assert.deepEqual(seen, seen.toSorted().reverse());
});

test('open holds are listed oldest first, regardless of when they lapse', async () => {
  const user = await userWith(100);
  const ids: string[] = [];
  for (const expires_in_seconds of [60, 10, 900, 30]) {
    ids.push((await hold(user, 1, { expires_in_seconds })).body.hold_id);
    clock.advance(1_000);
  }
  assert.deepEqual(
    (await openHolds(user)).map(({ hold_id }) => hold_id),
    ids,
  );
  clock.advance(8_000);
  assert.deepEqual(
    (await openHolds(user)).map(({ hold_id }) => hold_id),
    ids.toSpliced(1, 1),
  );
  assert.deepEqual(await openHolds(someone()), []);
});

test('an end user may have 1,000 open holds, and a request for one more gets 409 TooManyHolds', async () => {
  const user = await userWith(2 * OPEN_HOLDS_MAX);
  const replies = await Promise.all(Array.from({ length: OPEN_HOLDS_MAX }, () => hold(user, 1)));
  const refused = await scrip.post('/hold', { end_user_id: user, amount: 1 });
  assertProblem(refused, 'TooManyHolds', 409);
  assert.match(refused.body.detail, /1,000 open holds/);
  assert.deepEqual(await balanceOf(user), [OPEN_HOLDS_MAX, OPEN_HOLDS_MAX]);
  const listed = await openHolds(user);
  const ids = listed.map(({ hold_id }) => hold_id);
  assert.deepEqual(ids, replies.map(({ body }) => body.hold_id).sort());
  await release(user, ids[500] as string);
  await hold(user, 1);
});

test('a hold or capture that is repeated with the same idempotency key takes effect once', async () => {
  const user = await userWith(100);
  const twice = async (path: string, fields: Record<string, unknown>, key: string) => {
    const send = () => scrip.post(path, { end_user_id: user, ...fields }, { headers: { 'idempotency-key': key } });
    const [first, second] = [await send(), await send()];
    assert.equal(second.text, first.text);
    assert.equal(second.headers['transaction-id'], first.headers['transaction-id']);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    return first;
  };
  const { hold_id } = (await twice('/hold', { amount: 30 }, 'chat 1 hold')).body;
  assert.deepEqual(await balanceOf(user), [70, 30]);
  await twice('/capture', { hold_id, amount: 12 }, 'chat 1 capture');
  assert.deepEqual(await balanceOf(user), [88, undefined]);
});

test('held credits count toward the maximum balance', async () => {
  const user = await userWith(Number.MAX_SAFE_INTEGER);
  await hold(user, 1_000);
  const reply = await scrip.post('/add', { end_user_id: user, amount: 1 });
  assertProblem(reply, 'BalanceTooLarge', 422);
  assert.equal(reply.body.available, 0);
});
