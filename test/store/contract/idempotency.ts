// Contract tests for idempotency keys: until the record of a key expires, a repeated request gets the outcome of the
// first request.

import assert from 'node:assert/strict';
import type { Outcome, WriteCommand } from '../../../src/ledger/command.ts';
import { DAY_MS, HOUR_MS } from '../../../src/ledger/instant.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { ACCEPTED, balanceOf, EndUser, historyOf, keyed, type Result, replayed } from '../temporary-ledger.ts';

const NOTHING_THERE: Result = { refused: 'InsufficientFunds', requested: 5, available: 0 };

export function idempotencyContract(contract: Contract): void {
  replays(contract);
  keys(contract);
  retention(contract);
}

function replays({ it }: Contract): void {
  it('a command with an idempotency key takes effect once, and its outcome is replayed if the command is sent again', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    assert.deepEqual(await ledger.results([keyed(ada.add(10), 'a', 'first')]), [ACCEPTED]);
    assert.deepEqual(await ledger.results([keyed(ada.add(10), 'a', 'second')]), [replayed(ACCEPTED, 'first')]);
    assert.deepEqual(await historyOf(ledger, ada), ['+10 add']);
  });

  it('identical commands with the same idempotency key in one batch take effect once, even with other commands between them', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const batch = [ada.add(5), keyed(ada.subtract(3), 'k', '1'), keyed(ada.subtract(3), 'k', '2'), ada.subtract(1)];
    assert.deepEqual(await ledger.results([...batch, keyed(ada.subtract(3), 'k', '3')]), [
      ACCEPTED,
      ACCEPTED,
      replayed(ACCEPTED, '1'),
      ACCEPTED,
      replayed(ACCEPTED, '1'),
    ]);
    assert.equal(await balanceOf(ledger, ada), 1);
  });

  it('a refusal is replayed too, even if the request would now be accepted', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    assert.deepEqual(await ledger.results([keyed(ada.subtract(5), 'k', '1')]), [NOTHING_THERE]);
    await ledger.write([ada.add(100)]);
    assert.deepEqual(await ledger.results([keyed(ada.subtract(5), 'k', '2')]), [replayed(NOTHING_THERE, '1')]);
    assert.equal(await balanceOf(ledger, ada), 100);
    assert.deepEqual(await ledger.results([keyed(ada.subtract(5), 'other', '3')]), [ACCEPTED]);
  });

  it('a replayed outcome shows the cycle as it was after the first request, even if the cycle has changed since then', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const [started] = await ledger.write([keyed(ada.startCycle(30, 7), 'start', '1')]);
    const [stopped] = await ledger.write([keyed(ada.stopCycle(), 'stop', '2'), ada.subtract(10)]);
    assert(started && stopped);
    assert.deepEqual(
      await ledger.write([keyed(ada.startCycle(30, 7), 'start', '3'), keyed(ada.stopCycle(), 'stop', '4')]),
      [replayed(started, '1'), replayed(stopped, '2')],
    );
    assert.deepEqual(await historyOf(ledger, ada), ['-10 subtract', '+30 start-cycle']);
  });

  it('outcomes are still replayed after the ledger is reopened', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([keyed(ada.add(10), 'k', '1'), keyed(ada.subtract(11), 'l', '2')]);
    await ledger.reopen();
    const refused: Result = { refused: 'InsufficientFunds', requested: 11, available: 10 };
    assert.deepEqual(await ledger.results([keyed(ada.add(10), 'k', '3'), keyed(ada.subtract(11), 'l', '4')]), [
      replayed(ACCEPTED, '1'),
      replayed(refused, '2'),
    ]);
  });

  it('a command that is sent many times concurrently with the same idempotency key takes effect once', async (ledger) => {
    const users = Array.from({ length: 5 }, (_, index) => new EndUser(ledger.account, index));
    await ledger.write(users.map((user) => user.add(100)));
    const writes = Array.from({ length: 20 }, (_, index) =>
      ledger.write(users.map((user) => keyed(user.subtract(7), `k${index % 2}`, String(index)))),
    );
    const outcomes = (await Promise.all(writes)).flat();
    assert.equal(outcomes.filter((outcome) => outcome?.replayOf === undefined).length, 2 * users.length);
    assert(outcomes.every((outcome) => outcome?.refused === null));
    for (const user of users) assert.equal(await balanceOf(ledger, user), 100 - 2 * 7);
  });

  it('hundreds of idempotency keys of several end users can be looked up, both in one batch and one by one', async (ledger) => {
    const users = [ledger.account, ledger.other].flatMap((one) => [1, 2, 3].map((index) => new EndUser(one, index)));
    const commands = Array.from({ length: 300 }, (_, index) => {
      const user = users[index % users.length] as EndUser;
      return keyed(index % 7 === 0 ? user.subtract(100_000) : user.add(1 + index), `key ${index}`, `${index}`);
    });
    const outcomes: (Outcome | null)[] = [];
    for (let from = 0; from < commands.length; from += 37)
      outcomes.push(...(await ledger.write(commands.slice(from, from + 37))));
    const expected = outcomes.map((outcome, index) => outcome && replayed(outcome, `${index}`));
    assert.deepEqual(await ledger.write(commands), expected, 'the replays have the same transaction IDs');
    await ledger.reopen();
    assert.deepEqual(await ledger.write(commands.toReversed()), expected.toReversed());
    for (const index of [0, 36, 37, 150, 299])
      assert.deepEqual(await ledger.write([commands[index] as WriteCommand]), [expected[index]]);
  });
}

function keys({ it }: Contract): void {
  it('a different request with a used idempotency key is refused, and the first request can still be repeated with that key', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([keyed(ada.add(10, 31), 'k', '1')]);
    const others = [ada.add(11, 31), ada.add(10, 30), ada.subtract(10), ada.startCycle(10, 31), ada.stopCycle()];
    const outcomes = await ledger.write(others.map((command) => keyed(command, 'k', '2')));
    assert.deepEqual(
      outcomes,
      others.map(() => ({ refused: 'IdempotencyKeyReused' })),
    );
    assert.deepEqual(await ledger.results([keyed(ada.add(10, 31), 'k', '3')]), [replayed(ACCEPTED, '1')]);
    assert.equal(await balanceOf(ledger, ada), 10);
  });

  it('the same idempotency key can be used independently for another account or another end user', async (ledger) => {
    const { account, other } = ledger;
    const users = [new EndUser(account, 1), new EndUser(account, 2), new EndUser(other, 1)];
    const commands = users.map((user, index) => keyed(user.add(10 + index), 'k', String(index)));
    assert.deepEqual(await ledger.results(commands), [ACCEPTED, ACCEPTED, ACCEPTED]);
    for (const [index, user] of users.entries()) assert.equal(await balanceOf(ledger, user), 10 + index);
  });

  it('a request that is repeated with another API key of the same account gets the outcome of the first request', async (ledger) => {
    await ledger.write([keyed(new EndUser(ledger.account, 1, 'key:1').add(10), 'k', '1')]);
    const [outcome] = await ledger.results([keyed(new EndUser(ledger.account, 1, 'key:2').add(10), 'k', '2')]);
    assert.deepEqual(outcome, replayed(ACCEPTED, '1'));
  });

  it('an idempotency key may be any printable text of up to 255 characters', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const texts = [' ', `"quoted\\", {NULL}'`, 'NULL', 'x'.repeat(255), '%_', 'a', 'A', '0', '00', '{}', '☃'];
    const alike = ['\u00e9', 'e\u0301'];
    for (const key of [...texts, ...alike]) {
      assert.deepEqual(await ledger.results([keyed(ada.add(1), key, key)]), [ACCEPTED], key);
      assert.deepEqual(await ledger.results([keyed(ada.add(1), key, 'again')]), [replayed(ACCEPTED, key)], key);
    }
    assert.equal(await balanceOf(ledger, ada), texts.length + alike.length);
  });

  it('a refused request for an unknown end user is recorded with its idempotency key, but does not create the end user', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    assert.deepEqual(await ledger.results([keyed(ada.subtract(5), 'k', '1')]), [NOTHING_THERE]);
    await ledger.reopen();
    assert.equal((await ledger.audit()).endUsers, 0);
    assert.deepEqual(await ledger.results([keyed(ada.subtract(5), 'k', '2')]), [replayed(NOTHING_THERE, '1')]);
  });
}

function oneOfEach(ada: EndUser, suffix: string): WriteCommand[] {
  const commands = [ada.add(5), ada.startCycle(3, 500, 'replace'), ada.subtract(1), ada.stopCycle()];
  return commands.map((command) => keyed(command, `${command.kind} ${suffix}`, suffix));
}

const GRANTS = 2;

async function areReplayed(ledger: ContractLedger, commands: readonly WriteCommand[]): Promise<boolean[]> {
  return (await ledger.write(commands)).map((outcome) => outcome?.replayOf !== undefined);
}

function retention({ itInTime }: Contract): void {
  const retention = { grantsMs: 30 * DAY_MS, othersMs: DAY_MS };

  itInTime('idempotency records of grants and of other writes have separate retention periods', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100, 400)]);
    const start = ledger.wall;
    const first = oneOfEach(ada, 'first');
    await ledger.write(first);
    const sweepAt = async (wall: number) => {
      ledger.wall = wall;
      await ledger.load(ada.key);
      await ledger.deleteExpiredRecords(retention);
    };
    await sweepAt(start + DAY_MS);
    assert.deepEqual(await areReplayed(ledger, first), [true, true, true, true], 'records are kept for a whole day');
    await sweepAt(start + DAY_MS + 1);
    assert.deepEqual(await areReplayed(ledger, first), [true, true, false, false]);
    await sweepAt(start + 30 * DAY_MS);
    assert.deepEqual(await areReplayed(ledger, first.slice(0, GRANTS)), [true, true]);
    await sweepAt(start + 30 * DAY_MS + 1);
    assert.deepEqual(await areReplayed(ledger, first.slice(0, GRANTS)), [false, false]);
  });

  itInTime('expired idempotency records of all end users are deleted, and other records are not', async (ledger) => {
    const users = [ledger.account, ledger.other].flatMap((one) =>
      Array.from({ length: 30 }, (_, index) => new EndUser(one, index)),
    );
    await ledger.write(users.map((user) => user.add(50, 400)));
    const old = users.flatMap((user) => [keyed(user.add(1), 'o', 'old'), keyed(user.subtract(1), 'p', 'old')]);
    await ledger.write(old);
    ledger.wall += HOUR_MS;
    const young = users.flatMap((user) => [keyed(user.add(1), 'y', 'young'), keyed(user.subtract(1), 'z', 'young')]);
    await ledger.write(young);
    ledger.wall += 1;
    await ledger.load((users[0] as EndUser).key);
    await ledger.deleteExpiredRecords({ grantsMs: HOUR_MS, othersMs: HOUR_MS });
    assert.deepEqual(new Set(await areReplayed(ledger, young)), new Set([true]));
    assert.deepEqual(new Set(await areReplayed(ledger, old)), new Set([false]));
    assert.deepEqual(new Set(await areReplayed(ledger, old)), new Set([true]), 'the requests were recorded again');
  });

  itInTime(
    'after the ledger is reopened, deleted idempotency records stay deleted and the others are found',
    async (ledger) => {
      const ada = new EndUser(ledger.account, 1);
      await ledger.write([ada.add(100, 400)]);
      const first = oneOfEach(ada, 'first');
      await ledger.write(first);
      ledger.wall += 2 * DAY_MS;
      const second = oneOfEach(ada, 'second');
      await ledger.write(second);
      await ledger.deleteExpiredRecords(retention);
      await ledger.reopen();
      assert.deepEqual(await areReplayed(ledger, second), [true, true, true, true]);
      assert.deepEqual(await areReplayed(ledger, first), [true, true, false, false]);
      await ledger.reopen();
      ledger.wall += 29 * DAY_MS;
      await ledger.load(ada.key);
      await ledger.deleteExpiredRecords(retention);
      // `first` was recorded 31 days ago, and `second` 29 days ago.
      assert.deepEqual(await areReplayed(ledger, first), [false, false, false, false]);
      assert.deepEqual(await areReplayed(ledger, second), [true, true, false, false]);
    },
  );
}
