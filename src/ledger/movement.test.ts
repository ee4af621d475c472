// Movements: that they add up to what the postings and cycles themselves say, in every hour and day, whatever happens.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AMOUNT_MAX } from './amount.ts';
import type { Command } from './command.ts';
import type { Cycle } from './cycle.ts';
import { renews } from './cycle.ts';
import { batchOf, fold } from './fold.ts';
import { NO_RECORDS } from './idempotency.ts';
import { DAY_MS, HOUR_MS } from './instant.ts';
import {
  creditsOf,
  dayOf,
  hourOf,
  loadedBehind,
  type Movement,
  MovementSums,
  movementsOf,
  SERIES,
  type Series,
} from './movement.ts';
import type { Posting } from './posting.ts';
import { transactionId } from './transaction-id.ts';

const NOON = Date.UTC(2026, 0, 31, 12);
const ALL = Number.MAX_SAFE_INTEGER;

/** A store in memory: all that was ever written, and the movements beside it. */
class Books {
  now: number;
  readonly cycles = new Map<string, Cycle[]>();
  readonly postings: { account: number; endUser: string; posting: Posting }[] = [];
  readonly sums = new MovementSums();
  latest: readonly Movement[] = [];
  #sequence = 0;

  constructor(now = NOON) {
    this.now = now;
  }

  write(...commands: Command[]): void {
    const batch = batchOf(commands);
    const loaded = batch.users.map((user) => {
      const cycles = this.cycles.get(`${user.account}/${user.endUser}`) ?? [];
      return cycles.filter((cycle) => renews(cycle) || cycle.end > loadedBehind(this.now));
    });
    const nextId = () => transactionId({ at: this.now, sequence: ++this.#sequence, tail: 'aaaaaaaaaaaa' });
    const { changes } = fold(batch, { cycles: loaded, answers: NO_RECORDS }, { now: this.now, nextId }, ALL);
    this.latest = movementsOf(changes);
    for (const movement of this.latest) this.sums.add(movement);
    for (const { user, opened, changed, postings } of changes) {
      const name = `${user.account}/${user.endUser}`;
      const cycles = (this.cycles.get(name) ?? []).map(
        (cycle) => changed.find(({ before }) => before === cycle)?.after ?? cycle,
      );
      this.cycles.set(name, [...cycles, ...opened]);
      for (const posting of postings) this.postings.push({ ...user, posting });
    }
  }

  /** What the movements say of a series from a slot on. */
  summed(account: number, series: Series, from = 0, to = ALL): { credits: bigint; count: number } {
    let [credits, count] = [0n, 0];
    for (const movement of this.sums.movements()) {
      if (movement.account !== account || movement.series !== series) continue;
      if (movement.slot < from || movement.slot > to) continue;
      credits += creditsOf(movement);
      count += movement.count;
    }
    return { credits, count };
  }

  /** What the cycles themselves say: the credits that last into the present hour or longer, and who has any. */
  held(account: number): { credits: bigint; count: number } {
    let [credits, count] = [0n, 0];
    for (const [name, cycles] of this.cycles) {
      if (!name.startsWith(`${account}/`)) continue;
      const lasting = cycles.filter(({ end, remaining }) => hourOf(end) >= hourOf(this.now) && remaining > 0);
      for (const { remaining } of lasting) credits += BigInt(remaining);
      if (lasting.length > 0) count += 1;
    }
    return { credits, count };
  }

  /** What was left in the cycles that ended in these hours. */
  leftOver(account: number, from: number, to: number): bigint {
    const ended = [...this.cycles].flatMap(([name, cycles]) => (name.startsWith(`${account}/`) ? cycles : []));
    return ended
      .filter(({ end }) => hourOf(end) >= from && hourOf(end) <= to)
      .reduce((sum, { remaining }) => sum + BigInt(remaining), 0n);
  }

  flow(account: number, kind: Posting['kind'], day: number): { credits: bigint; count: number } {
    const ids = new Set<string>();
    let credits = 0n;
    for (const { account: owner, endUser, posting } of this.postings) {
      if (owner !== account || posting.kind !== kind || dayOf(posting.createdAt) !== day) continue;
      credits += BigInt(posting.amount);
      ids.add(`${endUser} ${posting.transactionId}`);
    }
    return { credits, count: ids.size };
  }
}

class Person {
  readonly #key;

  constructor(account: number, index: number) {
    this.#key = { account, endUser: `00000000-0000-4000-8000-00000000000${index}`, actor: 'key:1' };
  }

  add(amount: number, validityDays = 31): Command {
    return { ...this.#key, kind: 'add', amount, validityDays };
  }

  subtract(amount: number): Command {
    return { ...this.#key, kind: 'subtract', amount };
  }

  start(amount: number, validityDays: number, onActive: 'refuse' | 'replace' = 'replace'): Command {
    return { ...this.#key, kind: 'start-cycle', amount, validityDays, onActive };
  }

  stop(): Command {
    return { ...this.#key, kind: 'stop-cycle' };
  }

  renew(): Command {
    return { ...this.#key, kind: 'renew' };
  }
}

const [ADA, BOB, EVE] = [new Person(1, 1), new Person(1, 2), new Person(2, 1)] as const;

test('a batch moves each slot of an account once, whoever its end users are', () => {
  const books = new Books();
  books.write(ADA.add(10), BOB.add(20), EVE.add(5), ADA.subtract(3));
  const end = hourOf(NOON + 31 * DAY_MS);
  const entries = books.latest.map((movement) => ({ ...movement, credits: creditsOf(movement), moreCredits: 0n }));
  const of = (account: number, series: Series, slot: number, credits: bigint, count: number) => ({
    account,
    series,
    slot,
    credits,
    moreCredits: 0n,
    count,
  });
  assert.deepEqual(entries, [
    of(1, SERIES.held, end, 27n, 2),
    of(1, SERIES.add, dayOf(NOON), 30n, 2),
    of(1, SERIES.subtract, dayOf(NOON), -3n, 1),
    of(2, SERIES.held, end, 5n, 1),
    of(2, SERIES.add, dayOf(NOON), 5n, 1),
  ]);
});

test('a subtraction over several cycles is one transaction, and moves each hour in which they end', () => {
  const books = new Books();
  books.write(ADA.add(10, 1), ADA.add(10, 2), ADA.add(10, 3));
  books.write(ADA.subtract(25));
  assert.deepEqual(books.summed(1, SERIES.subtract), { credits: -25n, count: 1 });
  const held = [1, 2, 3].map((days) => {
    const hour = hourOf(NOON + days * DAY_MS);
    return books.summed(1, SERIES.held, hour, hour);
  });
  assert.deepEqual(held, [
    { credits: 0n, count: 0 },
    { credits: 0n, count: 0 },
    { credits: 5n, count: 1 },
  ]);
});

test('an end user counts until the hour is over in which the last credits end, and once', () => {
  const books = new Books(NOON + 15 * 60_000);
  books.write(ADA.add(10, 1));
  const end = books.now + DAY_MS;
  for (const [now, credits, count] of [
    [end - 1, 10n, 1],
    [end, 10n, 1],
    [NOON + DAY_MS + HOUR_MS - 1, 10n, 1],
    [NOON + DAY_MS + HOUR_MS, 0n, 0],
  ] as const) {
    assert.deepEqual(books.summed(1, SERIES.held, hourOf(now)), { credits, count }, `${now - end} ms after the end`);
  }
  books.now = end + 60_000;
  books.write(ADA.add(1, 5));
  assert.deepEqual(books.summed(1, SERIES.held, hourOf(books.now)).count, 1, 'also within that hour');
});

test('whose credits end as an hour begins is loaded until that hour is over, and who has none since before is not', () => {
  const books = new Books();
  books.write(ADA.add(10, 1));
  books.now += DAY_MS + 60_000;
  books.write(ADA.add(1, 5));
  assert.equal(books.summed(1, SERIES.held, hourOf(books.now)).count, 1);
  assert.equal(loadedBehind(books.now), NOON + DAY_MS - 1);
});

test('who has spent all has no credits, and whose credits come back counts again', () => {
  const books = new Books();
  books.write(ADA.add(10), ADA.subtract(10));
  assert.deepEqual(books.summed(1, SERIES.held), { credits: 0n, count: 0 });
  books.write(ADA.add(1));
  assert.deepEqual(books.summed(1, SERIES.held), { credits: 1n, count: 1 });
  books.write(ADA.subtract(1));
  assert.deepEqual(books.summed(1, SERIES.held), { credits: 0n, count: 0 });
});

test('a stop moves nothing', () => {
  const books = new Books();
  books.write(ADA.start(10, 7));
  books.write(ADA.stop());
  assert.deepEqual(books.latest, []);
});

test('a renewal is entered on the day on which it was due', () => {
  const books = new Books();
  books.write(ADA.start(10, 7));
  books.now += 20 * DAY_MS;
  books.write(ADA.renew());
  for (const days of [7, 14]) {
    const day = dayOf(NOON + days * DAY_MS);
    assert.deepEqual(books.summed(1, SERIES.renew, day, day), { credits: 10n, count: 1 });
  }
  assert.deepEqual(books.summed(1, SERIES.held, hourOf(books.now)), { credits: 10n, count: 1 });
});

test('credits of many end users are summed exactly, past 2^53−1 too', () => {
  const books = new Books();
  const people = Array.from({ length: 9 }, (_, index) => new Person(1, index));
  books.write(...people.map((person) => person.add(AMOUNT_MAX)));
  assert.equal(books.summed(1, SERIES.add).credits, 9n * BigInt(AMOUNT_MAX));
  books.write(...people.map((person) => person.subtract(AMOUNT_MAX - 1)));
  assert.deepEqual(books.summed(1, SERIES.held), { credits: 9n, count: 9 });
});

const person = fc.constantFrom(ADA, BOB, EVE, new Person(2, 2));
const amount = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 40 }) }, fc.constant(AMOUNT_MAX - 90));
const days = fc.integer({ min: 1, max: 4 });
const command = fc.oneof(
  fc.tuple(person, amount, days).map(([who, credits, valid]) => who.add(credits, valid)),
  fc.tuple(person, amount).map(([who, credits]) => who.subtract(credits)),
  fc.tuple(person, amount, days).map(([who, credits, valid]) => who.start(credits, valid)),
  person.map((who) => who.stop()),
  person.map((who) => who.renew()),
);
/** Often within an hour, so that cycles end in the hour in which others are made. */
const pause = fc.oneof(
  fc.integer({ min: 0, max: HOUR_MS }),
  fc.integer({ min: 0, max: 5 * DAY_MS }),
  fc.constantFrom(0, HOUR_MS, DAY_MS, DAY_MS - 1, DAY_MS + 1),
);
const step = fc.record({ commands: fc.array(command, { minLength: 1, maxLength: 6 }), pause });

test('movements sum to what cycles and postings say, at any instant of any history', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 25, size: 'max' }), pause, (steps, first) => {
      const books = new Books(NOON + first);
      for (const { commands, pause } of steps) {
        books.write(...commands);
        books.now += pause;
        for (const account of [1, 2])
          assert.deepEqual(books.summed(account, SERIES.held, hourOf(books.now)), books.held(account));
      }
      const [from, to] = [dayOf(NOON), dayOf(books.now)];
      for (const account of [1, 2]) {
        for (let day = from; day <= to; day++) {
          for (const kind of ['add', 'start-cycle', 'renew', 'subtract'] as const)
            assert.deepEqual(books.summed(account, SERIES[kind], day, day), books.flow(account, kind, day));
          const [begins, ends] = [day * 24, Math.min(day * 24 + 23, hourOf(books.now) - 1)];
          const expired = books.summed(account, SERIES.held, begins, ends).credits;
          assert.equal(expired, ends < begins ? 0n : books.leftOver(account, begins, ends));
        }
      }
    }),
    { numRuns: 400 },
  );
});

test('what is carried beyond 2^53−1 alone is a movement, nothing is none, and what is cleared is gone', () => {
  const sums = new MovementSums();
  const large = { account: 1, series: SERIES.held, slot: 7, credits: 0, moreCredits: 2n ** 53n, count: 0 };
  sums.add(large);
  sums.add({ ...large, slot: 8, moreCredits: 0n });
  assert.deepEqual(sums.movements(), [large]);
  sums.clear();
  assert.deepEqual(sums.movements(), []);
});
