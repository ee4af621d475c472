// Drives the real stack (SQLite file, group commit, renewal clock) and the reference model side by side through random
// histories, and compares every answer. The clock is moved by hand, backwards too, and the ledger is closed and opened
// again. `SEED` and `RUNS` choose the histories; a failure prints the command that repeats it.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { Transaction } from '../../src/ledger/posting.ts';
import {
  type ModelCommand,
  type ModelOutcome,
  type ModelTransaction,
  type ModelUser,
  ReferenceLedger,
} from './reference-model.ts';
import { instantIn, Stack } from './stack.ts';

/** So many that the mean length of a run, 100 with a deviation of 58, comes out below 80 once in 100,000 times. */
const RUNS_DEFAULT = 150;
const RUNS = Number(process.env.RUNS ?? RUNS_DEFAULT);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const COMMANDS_MAX = 200;
/** Below this a random test of histories tests next to nothing; at fast-check's default size it is 5. */
const COMMANDS_MEAN_MIN = 80;
/** For all runs and the shrinking of a failure. */
const WHOLE_MS_MAX = 60_000 + 400 * RUNS;

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const MOST = 2 ** 53 - 1;
const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
/** No leap goes past this, which keeps daily periods from being a million. */
const END = BEGIN + 100 * 365 * DAY;
/** From `BEGIN`, the fewest days that reach past the year 9999, and the most that the ledger tells apart. */
const DAYS_BEYOND_9999 = [2_912_384, 2_932_897] as const;

/** The same UUID under two accounts, and a second one under the first. */
const USERS: readonly ModelUser[] = [
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 2, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
];

/** What the histories must have come across, so that a generator that misses a rule is found out. */
const SIGHTS = [
  'a balance is read before its renewal is stored',
  'a batch puts off who is still catching up',
  'a renewal is listed before it is stored',
  'add: BalanceTooLarge',
  'add: BalanceTooLarge, for the sake of a renewal',
  'add: accepted',
  'start-cycle: BalanceTooLarge',
  'start-cycle: CycleAlreadyActive',
  'start-cycle: accepted',
  'stop-cycle: CycleNotFound',
  'stop-cycle: accepted',
  'subtract: InsufficientFunds',
  'subtract: accepted',
  'the clock is behind the ledger',
  'the renewal clock renews',
] as const;

const sights = new Map<(typeof SIGHTS)[number], number>(SIGHTS.map((sight) => [sight, 0]));

function saw(sight: (typeof SIGHTS)[number]): void {
  sights.set(sight, (sights.get(sight) ?? 0) + 1);
}

/** A number of credits, or what it stands for: all that the end user has, or may still get, or was told to be available. */
type Wanted = number | { readonly what: 'balance' | 'room' | 'available'; readonly more: 0 | 1 };

type Draft =
  | { readonly kind: 'add'; readonly amount: Wanted; readonly validityDays: number }
  | { readonly kind: 'subtract'; readonly amount: Wanted }
  | {
      readonly kind: 'start-cycle';
      readonly amount: Wanted;
      readonly validityDays: number;
      readonly onActive: 'refuse' | 'replace';
    }
  | { readonly kind: 'stop-cycle' };

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

/** The real ledger and the model of it, told the same things. */
class SideBySide {
  readonly model: ReferenceLedger;
  readonly real: Stack;
  steps = 0;
  readonly #listed = new Map<ModelUser, readonly Transaction[]>();
  /** What the last refusal of each end user said to be available. */
  readonly #available = new Map<ModelUser, number>();

  static async open(file: string): Promise<SideBySide> {
    const both = new SideBySide(await Stack.open(file, BEGIN), new ReferenceLedger(BEGIN));
    both.model.open();
    return both;
  }

  private constructor(real: Stack, model: ReferenceLedger) {
    this.real = real;
    this.model = model;
  }

  setWall(wall: number): void {
    if (wall < this.model.peek()) saw('the clock is behind the ledger');
    this.model.wall = wall;
    this.real.wall = wall;
  }

  async decide(drafts: readonly (readonly [who: number, draft: Draft])[]): Promise<void> {
    const commands = drafts.map(([who, draft]) => this.#commandOf(USERS[who] as ModelUser, draft));
    const batches = this.real.commit.counts.batches;
    const outcomes = await this.real.run(commands);
    if (this.real.commit.counts.batches > batches + 1) saw('a batch puts off who is still catching up');
    const expected = commands.map((command, index) => {
      const outcome = this.model.run(command);
      this.#note(USERS[drafts[index]?.[0] as number] as ModelUser, command, outcome);
      return outcome;
    });
    assert.deepEqual(outcomes, expected);
  }

  async compareBalance(user: ModelUser): Promise<void> {
    const { isAhead, ...balance } = await this.real.balance(user);
    if (isAhead) saw('a balance is read before its renewal is stored');
    assert.deepEqual(balance, this.model.balance(user));
  }

  async compareTransactions(user: ModelUser, limit: number): Promise<void> {
    const { all, isAhead } = await this.real.transactions(user, limit);
    if (isAhead) saw('a renewal is listed before it is stored');
    const listed = all.map(({ id: _, ...transaction }): ModelTransaction => transaction);
    assert.deepEqual(listed, this.model.transactions(user));
    for (const [index, { id, createdAt }] of all.entries()) {
      assert.match(id, UUID_VERSION_4);
      assert.equal(instantIn(id), createdAt, 'an id begins with its instant');
      const older = all[index + 1];
      assert(older === undefined || id > older.id, 'ids sort by creation');
    }
    const before = this.#listed.get(user) ?? [];
    assert.deepEqual(all.slice(all.length - before.length), before, 'what was listed once never changes');
    this.#listed.set(user, all);
  }

  async compareAll(): Promise<void> {
    for (const user of USERS) {
      await this.compareTransactions(user, 500);
      await this.compareBalance(user);
    }
    const findings: string[] = [];
    const report = await this.real.store.audit(({ message }) => findings.push(message));
    assert.deepEqual([...findings, ...report.store], [], 'the audit finds nothing');
    assert.equal(report.endUsers, this.model.endUsers());
  }

  #commandOf(user: ModelUser, draft: Draft): ModelCommand {
    const request = { ...user, actor: `key:${user.account}` };
    return draft.kind === 'stop-cycle'
      ? { ...request, ...draft }
      : { ...request, ...draft, amount: this.#amountOf(user, draft.amount) };
  }

  #amountOf(user: ModelUser, wanted: Wanted): number {
    if (typeof wanted === 'number') return wanted;
    const balance = this.model.peekBalance(user);
    const limit = { balance, room: MOST - balance, available: this.#available.get(user) ?? 0 }[wanted.what];
    return Math.min(Math.max(limit + wanted.more, 1), MOST);
  }

  #note(user: ModelUser, { kind }: ModelCommand, outcome: ModelOutcome): void {
    saw(`${kind}: ${outcome.refused ?? 'accepted'}` as (typeof SIGHTS)[number]);
    if (!('available' in outcome)) return;
    this.#available.set(user, outcome.available);
    const isKept = outcome.refused === 'BalanceTooLarge' && outcome.available < MOST - this.model.peekBalance(user);
    if (isKept) saw('add: BalanceTooLarge, for the sake of a renewal');
  }
}

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
    .tuple(who, draft)
    .map((each) => new Step(`user ${each[0]}: ${JSON.stringify(each[1])}`, (both) => both.decide([each])));

const batch = fc.tuple(fc.array(fc.tuple(who, draft), { minLength: 2, maxLength: 8, size: 'max' }), fc.boolean()).map(
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
      model.open();
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
  ] as const
).flatMap(([weight, command]) => Array<fc.Arbitrary<Step>>(weight).fill(command));

async function fileIn(t: TestContext, name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-model-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, name);
}

test('the ledger does what the reference model does', async (t: TestContext) => {
  const file = await fileIn(t, 'history');
  const lengths: number[] = [];
  let files = 0;
  const commands = fc.commands(COMMANDS, { size: 'max', maxCommands: COMMANDS_MAX });
  const history = fc.asyncProperty(commands, async (steps) => {
    const both = await SideBySide.open(`${file}-${++files}.db`);
    try {
      await fc.asyncModelRun(() => ({ model: both.model, real: both }), steps);
      await both.compareAll();
    } finally {
      await both.real.close();
    }
    lengths.push(both.steps);
  });
  const started = performance.now();
  const details = await fc.check(history, { seed: SEED, numRuns: RUNS, interruptAfterTimeLimit: WHOLE_MS_MAX });
  const repeat = `SEED=${SEED} RUNS=${RUNS} npx node --test test/model/model.test.ts`;
  if (details.failed) {
    const report = fc.defaultReportMessage(details);
    throw new Error(`repeat it with: ${repeat}\n${report}`, { cause: details.errorInstance });
  }
  assert(!details.interrupted, `stopped after ${lengths.length} of ${RUNS} runs, for want of time`);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  const seconds = (performance.now() - started) / SECOND;
  t.diagnostic(`${RUNS} runs of ${mean.toFixed(1)} commands on average in ${seconds.toFixed(1)} s; ${repeat}`);
  for (const [sight, count] of sights) t.diagnostic(`${count} × ${sight}`);
  // Fewer runs than these scatter too much to be judged by what they have in common.
  if (RUNS < RUNS_DEFAULT) return;
  assert(mean >= COMMANDS_MEAN_MIN, `a run has ${mean} commands on average; repeat it with: ${repeat}`);
  for (const [sight, count] of sights) assert(count > 0, `no history saw this: ${sight}; repeat it with: ${repeat}`);
});

test('a clock that jumps back over a restart revives nothing, even when all since was refused', async (t) => {
  const both = await SideBySide.open(await fileIn(t, 'ledger.db'));
  const [user] = USERS as [ModelUser];
  try {
    await both.decide([[0, { kind: 'add', amount: 5, validityDays: 1 }]]);
    both.setWall(BEGIN + DAY);
    await both.decide([[0, { kind: 'subtract', amount: 5 }]]);
    both.setWall(BEGIN);
    await both.real.restart();
    both.model.open();
    await both.compareBalance(user);
    await both.decide([[0, { kind: 'subtract', amount: 5 }]]);
  } finally {
    await both.real.close();
  }
});

test('a machine whose clock is past the year 9999 does not stop the ledger', { timeout: 20 * SECOND }, async (t) => {
  const stack = await Stack.open(await fileIn(t, 'ledger.db'), LAST_INSTANT - DAY);
  const [user] = USERS as [ModelUser];
  const request = { ...user, actor: 'key:1' };
  try {
    await stack.run([{ ...request, kind: 'start-cycle', amount: 5, validityDays: 1, onActive: 'refuse' }]);
    stack.wall = LAST_INSTANT + DAY;
    const [added] = await stack.run([{ ...request, kind: 'add', amount: 3, validityDays: 1 }]);
    assert.equal(added?.refused, null);
    assert.deepEqual(await stack.store.renewalsDue(1), []);
  } finally {
    await stack.close();
  }
});
