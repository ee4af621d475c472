// Contract tests for the feed: a consumer gets every posting, the postings of each end user arrive in order, and the
// totals count each posting once.

import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { NAMED_CYCLES_MAX } from '../../../src/store/transaction-history.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, problemsOf } from '../temporary-ledger.ts';
import { textsOf } from './events.ts';
import { totalOf } from './overview.ts';
import { nameOf, RecordedFeed } from './recorded-feed.ts';

async function postingsOf(ledger: ContractLedger, { key }: EndUser): Promise<string[]> {
  const names: string[] = [];
  for (let from: string | null = null; ; ) {
    const page = await ledger.history(key, { from });
    for (const { id, postings } of page.transactions)
      names.push(...postings.map((each) => nameOf({ transactionId: id, ...each })).toReversed());
    if (page.next === null) return names.toReversed();
    from = page.next;
  }
}

/** The feed may return the postings of one transaction in any order, so this function sorts them. */
function inTransactions(names: readonly string[]): string[] {
  const transactionOf = (name: string) => name.slice(0, 36);
  return names.map((name, index) => {
    const first = names.findIndex((other) => transactionOf(other) === transactionOf(name));
    const same = names.filter((other) => transactionOf(other) === transactionOf(name)).sort();
    return same[index - first] ?? 'separate from its transaction';
  });
}

function peopleOf({ account, other }: ContractLedger): EndUser[] {
  return Array.from({ length: 12 }, (_, index) => new EndUser(index % 3 ? account : other, index));
}

async function writeSome(ledger: ContractLedger, people: readonly EndUser[], random: Random): Promise<void> {
  const commands = Array.from({ length: 1 + random.below(12) }, () => {
    const user = random.pick(people);
    return random.pick([
      user.add(1 + random.below(40), 1 + random.below(9)),
      user.add(3, 2),
      user.subtract(1 + random.below(20)),
      user.startCycle(1 + random.below(9), 1 + random.below(3), 'replace'),
      user.stopCycle(),
      user.settle(),
    ]);
  });
  await ledger.write(commands);
}

async function totalOfAccount({ console, account }: ContractLedger): Promise<ReturnType<typeof totalOf>> {
  return totalOf((await console.overview(account, { days: 3 })).days);
}

const REBUILDS = effort(3, 10);

export function feedContract(contract: Contract): void {
  order(contract);
  failures(contract);
  positions(contract);
}

function order({ it }: Contract): void {
  it('the feed contains all postings of each end user in order', async (ledger) => {
    const people = peopleOf(ledger);
    const random = new Random(11);
    const feed = new RecordedFeed();
    for (let round = 0; round < effort(12, 40); round++) {
      await writeSome(ledger, people, random);
      ledger.wall += random.below(DAY_MS);
      if (round % 7 === 3) await ledger.deriveEvents(feed.derive);
      if (round % 11 === 5) await ledger.events.deriveNext(feed.derive);
    }
    await ledger.deriveEvents(feed.derive);
    for (const user of people)
      assert.deepEqual(inTransactions(feed.of(user).map(nameOf)), inTransactions(await postingsOf(ledger, user)));
    assert.deepEqual(problemsOf(await ledger.audit()), [], 'the totals match the postings');
  });

  it('the feed contains the postings that are written while a consumer reads the feed', async (ledger) => {
    const people = peopleOf(ledger);
    const random = new Random(12);
    const feed = new RecordedFeed();
    let isOver = false;
    const consuming = (async () => {
      for (; !isOver; await turn()) await ledger.events.deriveNext(feed.derive);
    })();
    for (let round = 0; round < effort(12, 30); round++) {
      await Promise.all([writeSome(ledger, people, random), writeSome(ledger, people, random)]);
      ledger.wall += random.below(DAY_MS);
    }
    isOver = true;
    await consuming;
    await ledger.deriveEvents(feed.derive);
    for (const user of people)
      assert.deepEqual(inTransactions(feed.of(user).map(nameOf)), inTransactions(await postingsOf(ledger, user)));
  });

  it('a transaction with more postings than a consumer usually reads at once is counted once in the totals and causes one event, and the history shows the terms of only its first cycles', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    for (let batch = 0; batch < 3; batch++) await ledger.write(Array.from({ length: 500 }, () => ada.add(2)));
    await ledger.consumeFeed();
    await ledger.write([ada.subtract(2_999), ada.subtract(1)]);
    const { next } = await ledger.history(ada.key, { limit: 1 });
    const { transactions, terms } = await ledger.history(ada.key, { from: next, limit: 1 });
    assert.equal(transactions[0]?.postings.length, 1_500);
    const first = transactions[0]?.postings.slice(0, NAMED_CYCLES_MAX).map(({ cycleId }) => cycleId);
    assert.deepEqual([...terms.keys()], first);
    await ledger.consumeFeed();
    assert.equal((await totalOfAccount(ledger)).transactions, 1_500 + 2);
    const texts = await textsOf(ledger);
    assert.equal(texts.length, 1_500 + 3);
    assert.deepEqual(texts.slice(-3), [
      'credits.subtracted 2999 of 1',
      'credits.subtracted 1 of 0',
      'balance.exhausted of 0',
    ]);
  });
}

function failures({ it }: Contract): void {
  it('after a failure, a consumer gets the same part of the feed again, and the totals count that part once', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const feed = new RecordedFeed();
    await ledger.write([ada.add(10), ada.subtract(3)]);
    await ledger.deriveEvents(feed.derive);
    feed.calls.length = 0;
    await ledger.write([ada.add(20), ada.subtract(4)]);
    feed.isFailing = true;
    for (let times = 0; times < 2; times++) await assert.rejects(ledger.events.deriveNext(feed.derive));
    assert.equal(ledger.trouble(), null, 'a failed consumer does not stop writes');
    await ledger.write([ada.subtract(2)]);
    feed.isFailing = false;
    const [failed] = feed.calls;
    await ledger.deriveEvents(feed.derive);
    const again = feed.calls.slice(2).flatMap(({ postings }) => postings);
    assert.deepEqual(again.slice(0, failed?.postings.length), failed?.postings);
    assert.deepEqual(
      again.map(({ amount }) => amount),
      [20, -4, -2],
    );
    await ledger.consumeFeed();
    const { added, spent, transactions } = await totalOfAccount(ledger);
    assert.deepEqual([added, spent, transactions], [30n, 9n, 5]);
  });

  it('a part of the feed that several calls consume at the same time is counted once in the totals', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.subtract(3)]);
    const consume = () => ledger.store.updateTotals().catch(() => false);
    await Promise.all([consume(), consume(), consume()]);
    await ledger.consumeFeed();
    const { added, spent, transactions } = await totalOfAccount(ledger);
    assert.deepEqual([added, spent, transactions], [10n, 3n, 2]);
  });
}

function positions({ it }: Contract): void {
  it('after the ledger is reopened, a consumer continues from its previous position in the feed', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(10), ada.subtract(3)]);
    await ledger.deriveEvents();
    await ledger.write([ada.subtract(1)]);
    await ledger.reopen();
    const feed = new RecordedFeed();
    await ledger.deriveEvents(feed.derive);
    assert.deepEqual(
      feed.postings.map(({ amount }) => amount),
      [-1],
    );
    await ledger.reopen();
    feed.calls.length = 0;
    await ledger.deriveEvents(feed.derive);
    assert.deepEqual(feed.postings, []);
  });

  it('a consumer gets nothing from the feed if there are no new postings', async (ledger) => {
    const feed = new RecordedFeed();
    assert.equal(await ledger.events.deriveNext(feed.derive), false);
    assert.deepEqual(feed.postings, []);
    await ledger.write([new EndUser(ledger.account, 1).subtract(1)]);
    assert.equal(await ledger.events.deriveNext(feed.derive), false);
    assert.deepEqual(feed.postings, [], 'a refusal stores no posting');
  });

  it('rebuilding the totals does not change them, and later postings are still counted', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100), ada.startCycle(20), ada.subtract(110)]);
    await ledger.consumeFeed();
    const before = await ledger.console.overview(ledger.account, { days: 3 });
    await ledger.withTools((tools) => tools.rebuildTotals());
    await ledger.consumeFeed();
    const after = await ledger.console.overview(ledger.account, { days: 3 });
    assert.deepEqual({ ...after, asOf: before.asOf }, before);
    await ledger.write([ada.add(1)]);
    await ledger.consumeFeed();
    assert.equal((await ledger.console.overview(ledger.account, { days: 3 })).outstanding, before.outstanding + 1n);
  });

  it('if the totals are rebuilt while they are being updated, they match the postings', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.add(100), ada.subtract(1)]);
    await ledger.consumeFeed();
    for (let round = 1; round <= REBUILDS; round++) {
      await ledger.write([ada.add(1), ada.subtract(1)]);
      const consuming = ledger.store.updateTotals().catch(() => false);
      await Promise.all([consuming, ledger.withTools((tools) => tools.rebuildTotals())]);
      assert.deepEqual(problemsOf(await ledger.audit()), []);
    }
    await ledger.consumeFeed();
    const { added, spent } = await totalOfAccount(ledger);
    assert.deepEqual([added, spent], [100n + BigInt(REBUILDS), 1n + BigInt(REBUILDS)]);
  });
}
