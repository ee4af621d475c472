// Tests the client's methods for holds, refunds, past and future balances, and filtered lists of transactions.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  ConnectionFailed,
  type Hold,
  HoldNotFound,
  IdempotencyKeyReused,
  InsufficientFunds,
  NotRefundable,
  RefundTooLarge,
  Scrip,
  type ScripOptions,
  TransactionNotFound,
  type Written,
} from '../../client/src/scrip.ts';
import { MovableClock, type Scrip as Service, someone, startScrip } from '../http/running-service.ts';

const clock = new MovableClock('2026-11-20T08:00:00.123Z');
let service: Service;
let scrip: Scrip;
before(async () => {
  service = await startScrip({ clock });
  scrip = client();
});
after(async () => {
  await service.assertConsistent();
  await service.stop();
});

function client(options: Partial<ScripOptions> = {}): Scrip {
  return new Scrip({ apiKey: service.writeKey, baseUrl: service.url, retries: 1, ...options });
}

/** Returns a `fetch` that loses some responses. The server still receives every request. */
function losing(isLost: (path: string, attempt: number) => boolean): typeof fetch {
  const attempts = new Map<string, number>();
  return async (input, init) => {
    const { pathname } = new URL(String(input));
    const attempt = (attempts.get(pathname) ?? 0) + 1;
    attempts.set(pathname, attempt);
    const response = await fetch(input, init);
    const copy = new Response(await response.text(), response);
    if (isLost(pathname, attempt)) throw new TypeError('the response was lost');
    return copy;
  };
}

async function userWith(amount: number): Promise<string> {
  const end_user_id = someone();
  await scrip.add({ end_user_id, amount });
  return end_user_id;
}

async function stateOf(end_user_id: string): Promise<readonly [balance: number, held: number]> {
  const { active_balance, held = 0 } = await scrip.getActiveBalance({ end_user_id });
  return [active_balance, held];
}

test('withHold holds the credits while its callback runs, and captures the cost that the callback returns', async () => {
  const end_user_id = await userWith(100);
  const work = async (hold: Written<Hold>) => {
    assert.deepEqual([hold.amount, hold.status, hold.transactionId], [50, 'open', hold.hold_id]);
    assert.deepEqual(await stateOf(end_user_id), [50, 50]);
    return 32;
  };
  const captured = await scrip.withHold(end_user_id, 50, work, { note: 'chat 1' });
  assert.deepEqual([captured.status, captured.amount, captured.returned], ['captured', 32, 18]);
  assert.deepEqual(await stateOf(end_user_id), [68, 0]);
  const { transactions } = await scrip.getAllUserTransactions({ end_user_id, details: true, note: 'chat 1' });
  assert.deepEqual(
    transactions.map(({ transaction_id, kind }) => [transaction_id, kind]),
    [[captured.transactionId, 'capture']],
  );
});

test('withHold captures a cost that exceeds the hold, if the balance covers the difference', async () => {
  const end_user_id = await userWith(100);
  assert.equal((await scrip.withHold(end_user_id, 10, () => 75)).amount, 75);
  assert.deepEqual(await stateOf(end_user_id), [25, 0]);
});

test('withHold releases the hold when the callback returns a cost of 0', async () => {
  const end_user_id = await userWith(100);
  const released = await scrip.withHold(end_user_id, 50, () => 0);
  assert.deepEqual([released.status, released.amount, released.returned], ['released', 50, 50]);
  assert.deepEqual(await stateOf(end_user_id), [100, 0]);
});

test('withHold releases the hold when the callback throws, and rethrows the error', async () => {
  const end_user_id = await userWith(100);
  const failure = new Error('the model is unavailable');
  const throwing = [
    () => Promise.reject(failure),
    () => {
      throw failure;
    },
  ];
  for (const work of throwing)
    await assert.rejects(scrip.withHold(end_user_id, 50, work), (error) => error === failure);
  assert.deepEqual(await stateOf(end_user_id), [100, 0]);
});

test('withHold does not call the callback if the credits cannot be held', async () => {
  const end_user_id = await userWith(10);
  const work = () => assert.fail('the callback was called');
  await assert.rejects(scrip.withHold(end_user_id, 50, work), InsufficientFunds);
});

test('if responses are lost, withHold retries with the same idempotency keys, so credits are held, captured and released only once', async () => {
  const end_user_id = await userWith(100);
  const lossy = client({ fetch: losing((_, attempt) => attempt === 1) });
  const captured = await lossy.withHold(end_user_id, 50, () => 32);
  assert.equal(captured.amount, 32);
  assert.deepEqual(await stateOf(end_user_id), [68, 0]);
  const failing = client({ fetch: losing((_, attempt) => attempt === 1) });
  const work = () => Promise.reject(new Error('the model is unavailable'));
  await assert.rejects(failing.withHold(end_user_id, 50, work), /the model is unavailable/);
  assert.deepEqual(await stateOf(end_user_id), [68, 0]);
});

test('if the callback throws and the release fails, withHold throws the error from the callback, and the hold lapses', async () => {
  const end_user_id = await userWith(100);
  const unreachable: typeof fetch = async (input, init) => {
    if (String(input).endsWith('/release')) throw new TypeError('no network');
    return fetch(input, init);
  };
  const work = () => Promise.reject(new Error('the model is unavailable'));
  const failing = client({ fetch: unreachable }).withHold(end_user_id, 50, work, { expires_in_seconds: 60 });
  await assert.rejects(failing, /the model is unavailable/);
  assert.deepEqual(await stateOf(end_user_id), [50, 50]);
  clock.advance(60_000);
  assert.deepEqual(await stateOf(end_user_id), [100, 0]);
});

test('if the capture is refused, withHold throws the error for the refusal, and the hold stays open and can be captured', async () => {
  const end_user_id = await userWith(100);
  const error = await scrip.withHold(end_user_id, 50, () => 101).catch((error) => error);
  assert(error instanceof InsufficientFunds);
  assert.deepEqual([error.requested, error.available, error.shortfall], [101, 100, 1]);
  assert.deepEqual(await stateOf(end_user_id), [50, 50]);
  assert.equal((await scrip.capture({ end_user_id, hold_id: error.holdId as string })).amount, 50);
});

test('a job that is delivered twice is held and captured only once if the idempotency keys contain its ID', async () => {
  const end_user_id = await userWith(100);
  const deliver = async (amount: number) => {
    const { hold_id } = await scrip.hold({ end_user_id, amount: 50 }, { idempotencyKey: 'hold 1' });
    return scrip.capture({ end_user_id, hold_id, amount }, { idempotencyKey: 'capture 1' });
  };
  for (let delivery = 0; delivery < 2; delivery++) assert.equal((await deliver(20)).amount, 20);
  await assert.rejects(deliver(30), IdempotencyKeyReused);
  assert.deepEqual(await stateOf(end_user_id), [80, 0]);
});

test('if no response to the capture arrives, the error contains the hold and the idempotency key for retrying the capture', async () => {
  const end_user_id = await userWith(100);
  const lossy = client({ fetch: losing((path) => path === '/capture') });
  const error = await lossy.withHold(end_user_id, 50, () => 32).catch((error) => error);
  assert(error instanceof ConnectionFailed);
  const hold_id = error.holdId as string;
  const options = { idempotencyKey: error.idempotencyKey as string };
  assert.equal((await scrip.capture({ end_user_id, hold_id, amount: 32 }, options)).amount, 32);
  assert.deepEqual(await stateOf(end_user_id), [68, 0]);
});

test('withHold throws a TypeError and leaves the hold open if the cost is negative or not a whole number', async () => {
  for (const cost of [1.5, -1, Number.NaN, undefined as unknown as number, '5' as unknown as number]) {
    const end_user_id = await userWith(100);
    const error = await scrip.withHold(end_user_id, 50, () => cost).catch((error) => error);
    assert(error instanceof TypeError);
    assert.deepEqual(await stateOf(end_user_id), [50, 50]);
    const { holdId } = error as TypeError & { readonly holdId: string };
    assert.equal((await scrip.release({ end_user_id, hold_id: holdId })).amount, 50);
  }
});

test('if the hold lapses while the callback runs, withHold throws HoldNotFound and spends nothing', async () => {
  const end_user_id = await userWith(100);
  const work = () => {
    clock.advance(1_000);
    return 5;
  };
  await assert.rejects(scrip.withHold(end_user_id, 50, work, { expires_in_seconds: 1 }), HoldNotFound);
  assert.deepEqual(await stateOf(end_user_id), [100, 0]);
});

test('withHold creates no hold if its signal is already aborted, and captures the cost even if the signal is aborted during the callback', async () => {
  const end_user_id = await userWith(100);
  const controller = new AbortController();
  const { signal } = controller;
  const captured = await scrip.withHold(
    end_user_id,
    50,
    () => {
      controller.abort(new Error('the user has left'));
      return 32;
    },
    { signal },
  );
  assert.equal(captured.amount, 32);
  const work = () => assert.fail('the callback was called');
  await assert.rejects(scrip.withHold(end_user_id, 50, work, { signal }), /the user has left/);
  assert.deepEqual(await stateOf(end_user_id), [68, 0]);
});

test('the client creates, lists and releases holds, and refunds subtractions; each write returns the ID of its transaction', async () => {
  const end_user_id = await userWith(100);
  const hold = await scrip.hold({ end_user_id, amount: 30, expires_in_seconds: null });
  const { holds } = await scrip.getHolds({ end_user_id });
  assert.deepEqual(holds, [
    { hold_id: hold.hold_id, amount: 30, created_at: hold.created_at, expires_at: hold.expires_at, status: 'open' },
  ]);
  const released = await scrip.release({ end_user_id, hold_id: hold.hold_id });
  assert.deepEqual([released.status, released.returned], ['released', 30]);
  const spent = await scrip.subtract({ end_user_id, amount: 40, note: 'image 1' });
  const refunded = await scrip.refund({ end_user_id, transaction_id: spent.transactionId as string, amount: 15 });
  assert.deepEqual([refunded.amount, refunded.expired, refunded.transactionId], [15, 0, refunded.transaction_id]);
  const { transactions } = await scrip.getAllUserTransactions({ end_user_id });
  const ids = transactions.map(({ transaction_id }) => transaction_id);
  assert.deepEqual(ids.slice(0, 2), [refunded.transactionId, spent.transactionId]);
  await scrip.startCycle({ end_user_id, amount: 1 });
  assert.notEqual((await scrip.stopCycle({ end_user_id })).transactionId, null);
  assert.equal((await scrip.stopCycle({ end_user_id })).transactionId, null, 'nothing was recorded');
});

test('each reason for refusing a refund has its own error class', async () => {
  const end_user_id = await userWith(100);
  const { transactionId } = await scrip.subtract({ end_user_id, amount: 40 });
  const transaction_id = transactionId as string;
  const refund = (fields: { transaction_id: string; amount?: number }) => scrip.refund({ end_user_id, ...fields });
  const tooLarge = await refund({ transaction_id, amount: 41 }).catch((error) => error);
  assert(tooLarge instanceof RefundTooLarge);
  assert.deepEqual([tooLarge.requested, tooLarge.refundable], [41, 40]);
  const { transactionId: refunded } = await refund({ transaction_id });
  const nothingLeft = await refund({ transaction_id }).catch((error) => error);
  assert(nothingLeft instanceof RefundTooLarge);
  assert.deepEqual([nothingLeft.requested, nothingLeft.refundable], [undefined, 0]);
  await assert.rejects(refund({ transaction_id: refunded as string }), NotRefundable);
  await assert.rejects(refund({ transaction_id: someone() }), TransactionNotFound);
});

test('the client reads the balance at a past or future instant, and the balance history of a time span', async () => {
  const end_user_id = await userWith(100);
  const added = new Date(clock.now);
  clock.advance(3_600_000);
  await scrip.subtract({ end_user_id, amount: 30 });
  const at = async (instant: Date | string) =>
    (await scrip.getActiveBalance({ end_user_id, at: instant })).active_balance;
  assert.equal(await at(new Date(added.getTime() - 1)), 0);
  assert.equal(await at(added), 100);
  assert.equal(await at(added.toISOString().replace('Z', '+00:00')), 100);
  assert.equal(await at(new Date(clock.now + 40 * 86_400_000)), 0);
  const { points } = await scrip.getBalanceHistory({
    end_user_id,
    from: added,
    to: new Date(clock.now),
    interval: 'hour',
  });
  assert.deepEqual(
    points.map(({ at: instant, active_balance }) => [instant, active_balance]),
    [
      [added.toISOString(), 100],
      [new Date(clock.now).toISOString(), 70],
    ],
  );
  assert.equal((await scrip.getBalanceHistory({ end_user_id })).points.length, 31);
});

test('the transactions iterator accepts filters and the details option, and its return type includes the details', async () => {
  const end_user_id = await userWith(100);
  for (let job = 1; job <= 5; job++) await scrip.subtract({ end_user_id, amount: job, note: `job ${job}` });
  const query = { end_user_id, kind: 'subtract', note: 'job', details: true } as const;
  const notes: (string | null)[] = [];
  for await (const { note, cycles, refundable } of scrip.transactions(query, { pageSize: 2 })) {
    assert.equal(cycles.length, 1);
    assert.equal(refundable, 5 - notes.length);
    notes.push(note);
  }
  assert.deepEqual(notes, ['job 5', 'job 4', 'job 3', 'job 2', 'job 1']);
});
