// Contract tests for the event log: each event is stored once and in order, despite concurrent writes, failures and
// restarts.

import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { deriveEvents } from '../../../src/events/derive.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import {
  type DeriveEvents,
  type EventPageRequest,
  EXPIRING_DAYS_DEFAULT,
  type LoggedEvent,
} from '../../../src/store/event-log.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { daysPlan, EndUser, idsOf } from '../temporary-ledger.ts';
import { RecordedFeed } from './recorded-feed.ts';

export function eventContract(contract: Contract): void {
  kinds(contract);
  order(contract);
  failures(contract);
}

export async function logOf(
  ledger: ContractLedger,
  {
    account = ledger.account,
    after = null,
    limit = 1_000,
    types,
  }: Partial<EventPageRequest> & { account?: number } = {},
): Promise<LoggedEvent[]> {
  const all: LoggedEvent[] = [];
  for (let from = after; ; ) {
    const page = await ledger.events.page(account, { after: from, limit, types });
    assert(page.events.length <= limit);
    all.push(...page.events);
    if (!page.hasMore) return all;
    assert.notEqual(page.position, from, 'each page has a new position');
    from = page.position;
  }
}

/** Returns strings such as `credits.added 10 of 10`: the second number is the balance after the event. */
export async function textsOf(ledger: ContractLedger, request: { account?: number } = {}): Promise<string[]> {
  return (await logOf(ledger, request)).map(({ type, data }) => {
    const { amount, balance } = JSON.parse(data);
    return [type, amount, 'of', balance].filter((word) => word !== undefined).join(' ');
  });
}

function kinds({ it, itInTime }: Contract): void {
  it('each request that moves credits or changes a cycle causes an event, but a hold causes no event', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100), ada.startCycle(20)]);
    const [spent, held, released] = idsOf(await ledger.write([ada.subtract(30), ada.hold(5), ada.hold(1)]));
    await ledger.write([ada.capture(held as string, 4), ada.release(released as string)]);
    await ledger.write([ada.refund(spent as string, 10), ada.stopCycle(), ada.subtract(1_000)]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), [
      'credits.added 100 of 100',
      'cycle.started 20 of 120',
      'credits.subtracted 30 of 90',
      'credits.subtracted 4 of 85',
      'credits.refunded 10 of 96',
      'cycle.stopped of 96',
    ]);
  });

  itInTime('a renewal, a change of plan and a lapse cause events', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const start = ledger.wall;
    await ledger.write([ada.startPlan(daysPlan(20, 10, 15)), ada.hold(4, 60)]);
    ledger.wall += 10 * DAY_MS;
    await ledger.write([ada.settle(), ada.startPlan(daysPlan(50, 30), 'at_period_end')]);
    ledger.wall += 10 * DAY_MS;
    await ledger.write([ada.settle()]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), [
      'cycle.started 20 of 20',
      'hold.lapsed 4 of 20',
      'credits.expiring 5 of 20',
      'credits.expired 5 of 35',
      'cycle.renewed 35 of 35',
      'credits.expiring 35 of 35',
      'credits.expired 35 of 50',
      'cycle.started 50 of 50',
    ]);
    const log = await logOf(ledger);
    assert.deepEqual(
      log.map(({ at }) => at - start),
      [0, 60_000, 3 * DAY_MS, 10 * DAY_MS, 10 * DAY_MS, 13 * DAY_MS, 20 * DAY_MS, 20 * DAY_MS],
    );
  });
}

function derivedAtOnce(ledger: ContractLedger, feed: RecordedFeed, people: readonly EndUser[]): Map<string, string[]> {
  const settings = { expiringDays: EXPIRING_DAYS_DEFAULT, thresholds: [] };
  return new Map(
    people.map((user) => {
      const { key } = user;
      const own = feed.of(user);
      const input = { user: key, from: null, postings: own, until: ledger.wall, settings };
      const events = own.length === 0 ? [] : deriveEvents(input).events;
      return [key.endUser, events.map(({ id, type, at, data }) => `${id} ${type} ${at} ${JSON.stringify(data)}`)];
    }),
  );
}

async function storedOf(ledger: ContractLedger, people: readonly EndUser[]): Promise<Map<string, string[]>> {
  const texts = new Map<string, string[]>(people.map(({ key }) => [key.endUser, []]));
  for (const account of [ledger.account, ledger.other])
    for (const { id, type, at, data } of await logOf(ledger, { account }))
      texts.get(JSON.parse(data).end_user_id)?.push(`${id} ${type} ${at} ${data}`);
  return texts;
}

function order({ it, itInTime }: Contract): void {
  it('the batches of an end user are processed in steps and in order, even if they have the same instant', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const amounts = Array.from({ length: 130 }, (_, index) => index + 1);
    for (const amount of amounts) await ledger.write([ada.add(amount)]);
    await ledger.events.deriveNext(deriveEvents);
    const { length } = await logOf(ledger);
    assert(length > 0 && length < amounts.length, `${length} events`);
    await ledger.consumeFeed();
    assert.deepEqual(
      (await logOf(ledger)).map(({ data }) => JSON.parse(data).amount),
      amounts,
    );
  });

  itInTime(
    'no matter how often events are derived, the log has the same events for each end user, in order',
    async (ledger) => {
      const random = new Random(21);
      const feed = new RecordedFeed();
      const people = Array.from(
        { length: 12 },
        (_, index) => new EndUser(index % 3 ? ledger.account : ledger.other, index),
      );
      for (let round = 0; round < effort(12, 40); round++) {
        await ledger.write(
          Array.from({ length: 1 + random.below(12) }, () => randomCommand(random.pick(people), random)),
        );
        if (round % 3 === 0) ledger.wall += random.below(3 * DAY_MS);
        if (round % 4 === 1) await ledger.deriveEvents(feed.derive);
        if (round % 5 === 2) await ledger.events.deriveNext(feed.derive);
      }
      await ledger.write(people.map((user) => user.settle()));
      await ledger.deriveEvents(feed.derive);
      assert.deepEqual(await storedOf(ledger, people), derivedAtOnce(ledger, feed, people));
    },
  );

  it('if postings are written while events are derived, their events are neither lost nor repeated', async (ledger) => {
    const people = Array.from({ length: 12 }, (_, index) => new EndUser(ledger.account, index));
    const feed = new RecordedFeed();
    let isOver = false;
    const deriving = (async () => {
      for (; !isOver; await turn()) await ledger.deriveEvents(feed.derive);
    })();
    for (let round = 0; round < effort(8, 20); round++)
      await Promise.all([
        ledger.write(people.map((user) => user.add(3))),
        ledger.write([...people, ...people].map((user) => user.subtract(1))),
      ]);
    isOver = true;
    await deriving;
    await ledger.deriveEvents(feed.derive);
    assert.deepEqual(await storedOf(ledger, people), derivedAtOnce(ledger, feed, people));
  });

  it('an account does not see the events of another account', async (ledger) => {
    const [ada, namesake] = [new EndUser(ledger.account, 1), new EndUser(ledger.other, 1)];
    await ledger.write([ada.add(10), namesake.add(7), ada.subtract(1)]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), ['credits.added 10 of 10', 'credits.subtracted 1 of 9']);
    assert.deepEqual(await textsOf(ledger, { account: ledger.other }), ['credits.added 7 of 7']);
    assert.deepEqual(await textsOf(ledger, { account: 999 }), []);
    const ids = [...(await logOf(ledger)), ...(await logOf(ledger, { account: ledger.other }))].map(({ id }) => id);
    assert.equal(new Set(ids).size, 3);
  });
}

export function randomCommand(user: EndUser, random: Random) {
  return random.pick([
    user.add(1 + random.below(40), 1 + random.below(20)),
    user.subtract(1 + random.below(20)),
    user.startCycle(1 + random.below(9), 1 + random.below(12), 'replace'),
    user.startPlan(daysPlan(9, 8, random.below(9)), 'replace'),
    user.hold(1 + random.below(5), 1 + random.below(400_000)),
    user.stopCycle(),
    user.settle(),
  ]);
}

function failures({ it, itInTime }: Contract): void {
  it('if deriving events fails, the same events are derived again later, and stored once', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.add(10), bob.add(5)]);
    const failing: DeriveEvents = (input) => {
      if (input.user.endUser === bob.key.endUser) throw new Error('the derivation failed');
      return deriveEvents(input);
    };
    for (let times = 0; times < 2; times++) await assert.rejects(ledger.deriveEvents(failing), /derivation failed/);
    assert.equal(ledger.trouble(), null, 'a failed derivation does not stop writes');
    await ledger.write([ada.subtract(2)]);
    await ledger.deriveEvents();
    const texts = await textsOf(ledger);
    assert.deepEqual(texts.toSorted(), ['credits.added 10 of 10', 'credits.added 5 of 5', 'credits.subtracted 2 of 8']);
  });

  it('if the COMMIT of events fails, the events are stored later', async (ledger) => {
    if (!ledger.canFail) return;
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.subtract(4)]);
    await ledger.whileCommitsFail(() => assert.rejects(ledger.deriveEvents()));
    await ledger.write([ada.subtract(1)]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), [
      'credits.added 10 of 10',
      'credits.subtracted 4 of 6',
      'credits.subtracted 1 of 5',
    ]);
  });

  itInTime('events that several calls derive at the same time are stored once', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const derive = () => ledger.events.deriveNext(deriveEvents).catch(() => false);
    await ledger.write([ada.add(10, 1), ada.subtract(4)]);
    await Promise.all([derive(), derive(), derive()]);
    await ledger.deriveEvents();
    ledger.wall += DAY_MS;
    await Promise.all([derive(), derive(), derive()]);
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), [
      'credits.added 10 of 10',
      'credits.subtracted 4 of 6',
      'credits.expired 6 of 0',
      'balance.exhausted of 0',
    ]);
  });

  it('if the ledger is reopened, even after a crash, events are neither lost nor repeated', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10)]);
    await ledger.deriveEvents();
    await ledger.write([ada.subtract(3)]);
    await ledger.reopen();
    await ledger.deriveEvents();
    await ledger.crash();
    await ledger.deriveEvents();
    assert.deepEqual(await textsOf(ledger), ['credits.added 10 of 10', 'credits.subtracted 3 of 7']);
  });
}
