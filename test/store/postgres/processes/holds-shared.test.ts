// Tests holds and refunds that several processes write to one database, and holds that lapse while no process runs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Outcome, WriteCommand } from '../../../../src/ledger/command.ts';
import { balanceAt } from '../../../../src/ledger/history.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import type { EndUserState } from '../../../../src/ledger/state.ts';
import { balanceOf, EndUser, NOON, problemsOf } from '../../temporary-ledger.ts';
import { TestLedger } from '../../test-ledger.ts';
import { pluggedOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { type SharedLedger, tally, withSharedLedger } from './shared-ledger.ts';

const TEST_MS_MAX = 60_000;
const MINUTE_MS = 60_000;

const ada = new EndUser(1, 1);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

function it(sentence: string, work: (ledger: SharedLedger) => Promise<void>): void {
  test(sentence, { timeout: TEST_MS_MAX }, () => withSharedLedger(server, work));
}

const IN_FLIGHT = 4;

async function writeAtOnce(
  { processes }: SharedLedger,
  command: (index: number) => WriteCommand,
  { times, batch }: { readonly times: number; readonly batch: number },
): Promise<readonly (Outcome | null)[]> {
  const outcomes: (Outcome | null)[] = [];
  let next = 0;
  const write = async (process: TestLedger) => {
    while (next < times) {
      const commands = Array.from({ length: batch }, () => command(next++));
      outcomes.push(...(await process.write(commands)));
    }
  };
  await Promise.all(processes.flatMap((process) => Array.from({ length: IN_FLIGHT }, () => write(process))));
  return outcomes;
}

async function transactionOf(ledger: TestLedger, command: WriteCommand): Promise<string> {
  const [outcome] = await ledger.write([command]);
  assert(outcome?.refused === null && outcome.transactionId !== null);
  return outcome.transactionId;
}

describe('holds and refunds through several processes on one PostgreSQL database', () => {
  for (const batch of [1, 20]) {
    it(`of 1,000 holds of 1 credit on a balance of 100, in batches of ${batch} through three processes at once, exactly 100 are accepted`, async (ledger) => {
      const { processes } = ledger;
      await processes[0].write([ada.add(60, 10), ada.add(40, 20)]);
      const outcomes = await writeAtOnce(ledger, () => ada.hold(1), { times: 1_000, batch });
      assert.deepEqual(tally(outcomes), { accepted: 100, InsufficientFunds: 900 });
      for (const process of processes) {
        const { now, state } = await process.load(ada.key);
        assert.deepEqual(balanceAt(state, now), { at: now, balance: 0, held: 100 });
        assert.equal(state.holds.length, 100);
      }
    });
  }

  it('of 60 full refunds of one transaction through three processes at once, exactly one is accepted', async (ledger) => {
    const [process] = ledger.processes;
    await process.write([ada.add(100)]);
    const spent = await transactionOf(process, ada.subtract(70));
    const outcomes = await writeAtOnce(ledger, () => ada.refund(spent), { times: 60, batch: 2 });
    assert.deepEqual(tally(outcomes), { accepted: 1, RefundTooLarge: 59 });
    assert.equal(await balanceOf(process, ada), 100);
  });

  it('partial refunds through three processes at once never return more than was spent', async (ledger) => {
    const [process] = ledger.processes;
    await process.write([ada.add(30, 10), ada.add(100, 20)]);
    const hold = await transactionOf(process, ada.hold(20));
    const spent = await transactionOf(process, ada.capture(hold, 70));
    const outcomes = await writeAtOnce(ledger, () => ada.refund(spent, 8), { times: 60, batch: 3 });
    assert.deepEqual(tally(outcomes), { accepted: 8, RefundTooLarge: 52 });
    assert.equal(await balanceOf(process, ada), 124);
    assert.deepEqual(await process.results([ada.refund(spent)]), [
      { refused: null, refund: { restored: 6, expired: 0 } },
    ]);
  });

  it('of 60 captures and releases of one hold through three processes at once, exactly one is accepted', async (ledger) => {
    const [process] = ledger.processes;
    await process.write([ada.add(100)]);
    const hold = await transactionOf(process, ada.hold(40));
    const end = (index: number) => (index % 2 === 0 ? ada.capture(hold, 15) : ada.release(hold));
    const outcomes = await writeAtOnce(ledger, end, { times: 60, batch: 1 });
    assert.deepEqual(tally(outcomes), { accepted: 1, HoldNotFound: 59 });
    const captured = outcomes.some((outcome) => outcome?.refused === null && outcome.hold?.status === 'captured');
    assert.equal(await balanceOf(process, ada), captured ? 85 : 100);
  });
});

test('each hold on PostgreSQL lapses once, at its expiry, even if no process was running at that time', {
  timeout: TEST_MS_MAX,
}, async () => {
  const url = await server.createDatabase();
  let wall = NOON;
  const open = () => TestLedger.open(async () => pluggedOnMovedClock(url, () => wall));
  const close = async (process: TestLedger) => {
    await process.close();
    await process.remove();
  };
  const users = Array.from({ length: 20 }, (_, index) => new EndUser(1, index));
  const first = await open();
  // The second hold takes some credits from a cycle that ends before the hold lapses.
  await first.write(
    users.flatMap((user) => [user.add(50, 10), user.hold(20, 60), user.add(10, 1), user.hold(40, 86_460)]),
  );
  await close(first);

  wall += 2 * DAY_MS;
  const processes = [await open(), await open(), await open()] as const;
  for (const process of processes) assert.equal((await process.due(100)).length, users.length);
  const settlements = processes.map((process, index) =>
    process.write(users.flatMap((user) => [...(index === 1 ? [user.subtract(1)] : []), user.settle()])),
  );
  for (const outcomes of await Promise.all(settlements)) assert(outcomes.every((outcome) => outcome?.refused === null));
  for (const process of processes) assert.deepEqual(await process.due(100), []);
  const [process] = processes;
  for (const user of users) {
    const { transactions } = await process.store.history(user.key, { from: null, limit: 100, kinds: ['lapse'] });
    const lapsed = transactions.map(({ createdAt, amount }) => [createdAt, amount]);
    assert.deepEqual(lapsed, [
      [NOON + DAY_MS + MINUTE_MS, 0],
      [NOON + MINUTE_MS, 0],
    ]);
    const instants = [MINUTE_MS - 1, MINUTE_MS, DAY_MS - 1, DAY_MS, DAY_MS + MINUTE_MS].map((after) => NOON + after);
    const { states } = await process.store.statesAt(user.key, instants);
    const points = instants.map((at, index) => balanceAt(states[index] as EndUserState, at));
    assert.deepEqual(
      points.map(({ balance, held }) => [balance, held]),
      [
        [0, 60],
        [20, 40],
        [20, 40],
        [20, 40],
        [50, 0],
      ],
    );
    assert.equal(await balanceOf(process, user), 49);
  }
  assert.deepEqual(problemsOf(await process.audit()), []);
  for (const each of processes) await close(each);
});
