// Random histories: what may be asked of a ledger, and what may happen to its clock, drawn by fast-check.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ModelUser, ReferenceLedger } from './reference-model.ts';
import { BEGIN, type Draft, MOST, type SideBySide, saw, USERS, type Wanted } from './side-by-side.ts';

const COMMANDS_MAX = 200;

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
/** No leap goes past this, which keeps daily periods from being a million. */
const END = BEGIN + 100 * 365 * DAY;
/** From `BEGIN`, the fewest days that reach past the year 9999, and the most that the ledger tells apart. */
const DAYS_BEYOND_9999 = [2_912_384, 2_932_897] as const;

const who = fc.nat({ max: USERS.length - 1 });
const validityDays = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 6, arbitrary: fc.integer({ min: 4, max: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: DAYS_BEYOND_9999[0] - 30, max: DAYS_BEYOND_9999[1] }) },
);
const limitOf = (what: 'balance' | 'room' | 'available') =>
  fc.record({ what: fc.constant(what), more: fc.constantFrom(0 as const, 1 as const) });
const small = fc.integer({ min: 1, max: 60 });
const added: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 30, arbitrary: small },
  { weight: 1, arbitrary: fc.integer({ min: 2 ** 52 - 5, max: 2 ** 52 + 5 }) },
  { weight: 1, arbitrary: fc.integer({ min: MOST - 80, max: MOST }) },
  { weight: 4, arbitrary: limitOf('room') },
  { weight: 3, arbitrary: limitOf('available') },
);
const subtracted: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 10, arbitrary: small },
  { weight: 3, arbitrary: limitOf('balance') },
  { weight: 1, arbitrary: limitOf('available') },
);
const add = fc.record({ kind: fc.constant('add' as const), amount: added, validityDays });
const subtract = fc.record({ kind: fc.constant('subtract' as const), amount: subtracted });
const startCycle = fc.record({
  kind: fc.constant('start-cycle' as const),
  amount: added,
  validityDays,
  onActive: fc.constantFrom('refuse' as const, 'replace' as const),
});
const stopCycle = fc.record({ kind: fc.constant('stop-cycle' as const) });
const draft: fc.Arbitrary<Draft> = fc.oneof(add, subtract, startCycle, stopCycle);
/** Mostly none; few enough that some come again by chance. */
const KEYS = 60;
const key = fc.option(fc.nat({ max: KEYS - 1 }), { freq: 2 });

class Step implements fc.AsyncCommand<ReferenceLedger, SideBySide> {
  readonly #text: string;
  readonly #act: (both: SideBySide) => Promise<void> | void;

  constructor(text: string, act: (both: SideBySide) => Promise<void> | void) {
    this.#text = text;
    this.#act = act;
  }

  check(): boolean {
    return true;
  }

  async run(_: ReferenceLedger, both: SideBySide): Promise<void> {
    both.steps += 1;
    await this.#act(both);
    assert.deepEqual(both.real.troubles, [], 'the renewal clock met no trouble');
  }

  toString(): string {
    return this.#text;
  }
}

const write = (draft: fc.Arbitrary<Draft>) =>
  fc
    .tuple(who, draft, key)
    .map(
      (each) =>
        new Step(`user ${each[0]}: ${JSON.stringify(each[1])} with key ${each[2]}`, (both) => both.decide([each])),
    );

const again = fc
  .nat({ max: 20 })
  .map((nth) => new Step(`keyed request ${nth} before the latest, again`, (both) => both.sendAgain(nth)));

const batch = fc
  .tuple(fc.array(fc.tuple(who, draft, key), { minLength: 2, maxLength: 8, size: 'max' }), fc.boolean())
  .map(
    ([drafts, hasTick]) =>
      new Step(`batch${hasTick ? ' beside a tick' : ''}: ${JSON.stringify(drafts)}`, async (both) => {
        const ticked = hasTick ? both.real.renewals.tick() : null;
        if (hasTick) both.model.tick();
        await both.decide(drafts);
        await ticked;
      }),
  );

const readBalance = who.map(
  (who) => new Step(`user ${who}: balance`, (both) => both.compareBalance(USERS[who] as ModelUser)),
);

const readTransactions = fc
  .tuple(who, fc.integer({ min: 1, max: 12 }))
  .map(
    ([who, limit]) =>
      new Step(`user ${who}: transactions by ${limit}`, (both) =>
        both.compareTransactions(USERS[who] as ModelUser, limit),
      ),
  );

/** Forwards from the ledger's time, wherever the machine's clock has gone in between. */
const forwards = (step: fc.Arbitrary<number>) =>
  step.map((ms) => new Step(`${ms} ms pass`, (both) => both.setWall(both.model.peek() + ms)));

const toBoundary = fc.tuple(fc.nat({ max: 4 }), fc.constantFrom(-1, 0, 0, 1)).map(
  ([nth, offset]) =>
    new Step(`until ${offset} ms after boundary ${nth}`, (both) => {
      const boundaries = both.model.boundaries().filter((boundary) => boundary < END);
      const boundary = boundaries[nth % Math.max(boundaries.length, 1)] ?? 0;
      both.setWall(Math.max(boundary + offset, both.model.peek()));
    }),
);

const backwards = fc
  .oneof(fc.integer({ min: 1, max: 10 * SECOND }), fc.integer({ min: 1, max: 400 * DAY }))
  .map((ms) => new Step(`the clock jumps back ${ms} ms`, (both) => both.setWall(Math.max(both.model.wall - ms, 0))));

const tick = fc.constant(null).map(
  () =>
    new Step('renewal tick', async ({ real, model }) => {
      const before = real.renewals.renewed;
      await real.renewals.tick();
      model.tick();
      if (real.renewals.renewed > before) saw('the renewal clock renews');
      assert.deepEqual(await real.store.renewalsDue(1), [], 'a tick leaves nothing due');
    }),
);

const restart = fc.constant(null).map(
  () =>
    new Step('restart', async ({ real, model }) => {
      await real.restart();
      model.lookAtClock();
    }),
);

const crash = fc.constant(null).map(
  () =>
    new Step('crash', async (both) => {
      // Up to a second of what was only looked at may be forgotten: the clock is not behind it this time.
      both.setWall(both.model.peek());
      await both.real.crash();
      both.model.lookAtClock();
    }),
);

/** `fc.commands` draws each of these alike, so what is to come often stands here often. */
const COMMANDS: fc.Arbitrary<Step>[] = (
  [
    [6, write(add)],
    [6, write(subtract)],
    [4, write(startCycle)],
    [2, write(stopCycle)],
    [4, batch],
    [4, readBalance],
    [2, readTransactions],
    [2, forwards(fc.integer({ min: 1, max: 3 * SECOND }))],
    [4, forwards(fc.integer({ min: 1, max: 45 }).map((days) => days * DAY))],
    [1, forwards(fc.integer({ min: 1, max: 4 * 365 * DAY }))],
    [5, toBoundary],
    [2, backwards],
    [2, tick],
    [2, restart],
    [2, crash],
    [4, again],
  ] as const
).flatMap(([weight, command]) => Array<fc.Arbitrary<Step>>(weight).fill(command));

export const histories = fc.commands(COMMANDS, { size: 'max', maxCommands: COMMANDS_MAX });
