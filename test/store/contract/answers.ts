// The contract of idempotency keys: one key, one effect, one answer, for as long as the answers are kept.

import assert from 'node:assert/strict';
import { ACCEPTED, type Command, type Outcome } from '../../../src/ledger/command.ts';
import type { Contract } from '../store-contract.ts';
import { balanceOf, EndUser, historyOf } from '../temporary-ledger.ts';

const HOUR_MS = 3_600_000;

export function answerContract({ it, itInTime }: Contract): void {
  it('a command with a key has one effect, and its outcome again when it comes again', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    assert.deepEqual(await store.write([keyed(ada.add(10), 'a', 'first')]), [ACCEPTED]);
    assert.deepEqual(await store.write([keyed(ada.add(10), 'a', 'second')]), [again(ACCEPTED, 'first')]);
    assert.deepEqual(await historyOf(store, ada), ['+10 add']);
  });

  it('so does a key that comes several times in one batch, between commands without one', async (ledger) => {
    const { store, account } = ledger;
    const ada = new EndUser(account, 1);
    const batch = [ada.add(5), keyed(ada.subtract(3), 'k', '1'), keyed(ada.subtract(3), 'k', '2'), ada.subtract(1)];
    assert.deepEqual(await store.write([...batch, keyed(ada.subtract(3), 'k', '3')]), [
      ACCEPTED,
      ACCEPTED,
      again(ACCEPTED, '1'),
      ACCEPTED,
      again(ACCEPTED, '1'),
    ]);
    assert.equal(await balanceOf(store, ada), 1);
  });

  it('a refusal is the answer to its key, also once it would be accepted', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const refused: Outcome = { refused: 'InsufficientFunds', requested: 5, available: 0 };
    assert.deepEqual(await store.write([keyed(ada.subtract(5), 'k', '1')]), [refused]);
    await store.write([ada.add(100)]);
    assert.deepEqual(await store.write([keyed(ada.subtract(5), 'k', '2')]), [again(refused, '1')]);
    assert.equal(await balanceOf(store, ada), 100);
    assert.deepEqual(await store.write([keyed(ada.subtract(5), 'other', '3')]), [ACCEPTED]);
  });

  it('the cycle of an answer is as it was, whatever became of it', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const [started] = await store.write([keyed(ada.startCycle(30, 7), 'start', '1')]);
    const [stopped] = await store.write([keyed(ada.stopCycle(), 'stop', '2'), ada.subtract(10)]);
    assert(started && stopped);
    assert.deepEqual(
      await store.write([keyed(ada.startCycle(30, 7), 'start', '3'), keyed(ada.stopCycle(), 'stop', '4')]),
      [again(started, '1'), again(stopped, '2')],
    );
    assert.deepEqual(await historyOf(store, ada), ['-10 subtract', '+30 start-cycle']);
  });

  it('a key with another request is refused, and stays the key of the first', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    await store.write([keyed(ada.add(10, 31), 'k', '1')]);
    const others = [ada.add(11, 31), ada.add(10, 30), ada.subtract(10), ada.startCycle(10, 31), ada.stopCycle()];
    const outcomes = await store.write(others.map((command) => keyed(command, 'k', '2')));
    assert.deepEqual(
      outcomes,
      others.map(() => ({ refused: 'IdempotencyKeyReused' })),
    );
    assert.deepEqual(await store.write([keyed(ada.add(10, 31), 'k', '3')]), [again(ACCEPTED, '1')]);
    assert.equal(await balanceOf(store, ada), 10);
  });

  it('a key is that of one account and one end user', async ({ store, account, other }) => {
    const users = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(other, 1)];
    const commands = users.map((user, index) => keyed(user.add(10 + index), 'k', String(index)));
    assert.deepEqual(await store.write(commands), [ACCEPTED, ACCEPTED, ACCEPTED]);
    for (const [index, user] of users.entries()) assert.equal(await balanceOf(store, user), 10 + index);
  });

  it('another API key of the account gets the same answer', async ({ store, account }) => {
    await store.write([keyed(new EndUser(account, 1, 'key:1').add(10), 'k', '1')]);
    const [outcome] = await store.write([keyed(new EndUser(account, 1, 'key:2').add(10), 'k', '2')]);
    assert.deepEqual(outcome, again(ACCEPTED, '1'));
  });

  it('a key may be any printable text of up to 255 characters', async ({ store, account }) => {
    const ada = new EndUser(account, 1);
    const keys = [' ', `"quoted\\", {NULL}'`, 'NULL', 'x'.repeat(255), '%_', 'a', 'A', '0', '00', '{}', '☃'];
    for (const key of keys) {
      assert.deepEqual(await store.write([keyed(ada.add(1), key, key)]), [ACCEPTED], key);
      assert.deepEqual(await store.write([keyed(ada.add(1), key, 'again')]), [again(ACCEPTED, key)], key);
    }
    assert.equal(await balanceOf(store, ada), keys.length);
  });

  it('answers are there when the ledger is opened again', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.store.write([keyed(ada.add(10), 'k', '1'), keyed(ada.subtract(11), 'l', '2')]);
    await ledger.reopen();
    assert.deepEqual(await ledger.store.write([keyed(ada.add(10), 'k', '3'), keyed(ada.subtract(11), 'l', '4')]), [
      again(ACCEPTED, '1'),
      again({ refused: 'InsufficientFunds', requested: 11, available: 10 }, '2'),
    ]);
  });

  it('a key that many send at once has one effect', async ({ store, account }) => {
    const users = Array.from({ length: 5 }, (_, index) => new EndUser(account, index));
    await store.write(users.map((user) => user.add(100)));
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.write(users.map((user) => keyed(user.subtract(7), `k${index % 2}`, String(index)))),
    );
    const outcomes = (await Promise.all(writes)).flat();
    assert.equal(outcomes.filter((outcome) => outcome?.replayOf === undefined).length, 2 * users.length);
    assert(outcomes.every((outcome) => outcome?.refused === null));
    for (const user of users) assert.equal(await balanceOf(store, user), 100 - 2 * 7);
  });

  itInTime('an answer is kept for its time, and forgotten after it', async (ledger) => {
    const { store, account } = ledger;
    const ada = new EndUser(account, 1);
    const add = (requestId: string) => store.write([keyed(ada.add(1), 'k', requestId)]);
    await add('1');
    ledger.wall += 24 * HOUR_MS;
    await store.cycles(ada.key);
    assert.equal(await forgetAll(store, 24 * HOUR_MS), 0);
    assert.deepEqual(await add('2'), [again(ACCEPTED, '1')]);
    ledger.wall += 1;
    await store.cycles(ada.key);
    assert.equal(await forgetAll(store, 24 * HOUR_MS), 1);
    assert.deepEqual(await add('3'), [ACCEPTED]);
    assert.equal(await balanceOf(store, ada), 2);
  });

  itInTime('of many answers the old ones are forgotten, whoever they belong to', async (ledger) => {
    const { store, account, other } = ledger;
    const users = [account, other].flatMap((one) => Array.from({ length: 30 }, (_, index) => new EndUser(one, index)));
    const addAll = (key: string) => store.write(users.map((user) => keyed(user.add(1), key, key)));
    await addAll('old');
    ledger.wall += HOUR_MS;
    await addAll('young');
    assert.equal(await forgetAll(store, HOUR_MS / 2), users.length);
    assert.deepEqual(new Set((await addAll('young')).map((outcome) => outcome?.replayOf)), new Set(['young']));
    assert.deepEqual(new Set((await addAll('old')).map((outcome) => outcome?.replayOf)), new Set([undefined]));
  });
}

function keyed(command: Command, key: string, requestId: string): Command {
  assert(command.kind !== 'renew');
  return { ...command, idempotency: { key, requestId } };
}

function again(outcome: Outcome, replayOf: string): Outcome {
  return { ...outcome, replayOf };
}

/** Steps for as long as any store needs to come round to every answer. */
async function forgetAll(
  store: { deleteExpiredRecords(ageMs: number): Promise<number> },
  ageMs: number,
): Promise<number> {
  let forgotten = 0;
  for (let step = 0; step < 1_500; step++) forgotten += await store.deleteExpiredRecords(ageMs);
  return forgotten;
}
