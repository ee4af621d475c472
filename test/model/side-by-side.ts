// The real ledger and the reference model, told the same things, every answer compared. Counts what the histories come
// across, so that a generator that misses a rule is found out.

import assert from 'node:assert/strict';
import type { Transaction } from '../../src/ledger/posting.ts';
import {
  type ModelCommand,
  type ModelOutcome,
  type ModelTransaction,
  type ModelUser,
  ReferenceLedger,
} from './reference-model.ts';
import { instantIn, type OpenStore, Stack } from './stack.ts';

export const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
export const MOST = 2 ** 53 - 1;

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The same UUID under two accounts, and a second one under the first. */
export const USERS: readonly ModelUser[] = [
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

export const sights = new Map<(typeof SIGHTS)[number], number>(SIGHTS.map((sight) => [sight, 0]));

export function saw(sight: (typeof SIGHTS)[number]): void {
  sights.set(sight, (sights.get(sight) ?? 0) + 1);
}

/** A number of credits, or what it stands for: all that the end user has, or may still get, or was told to be available. */
export type Wanted = number | { readonly what: 'balance' | 'room' | 'available'; readonly more: 0 | 1 };

export type Draft =
  | { readonly kind: 'add'; readonly amount: Wanted; readonly validityDays: number }
  | { readonly kind: 'subtract'; readonly amount: Wanted }
  | {
      readonly kind: 'start-cycle';
      readonly amount: Wanted;
      readonly validityDays: number;
      readonly onActive: 'refuse' | 'replace';
    }
  | { readonly kind: 'stop-cycle' };

/** The real ledger and the model of it, told the same things. */
export class SideBySide {
  readonly model: ReferenceLedger;
  readonly real: Stack;
  steps = 0;
  readonly #listed = new Map<ModelUser, readonly Transaction[]>();
  /** What the last refusal of each end user said to be available. */
  readonly #available = new Map<ModelUser, number>();

  static async open(openStore: OpenStore): Promise<SideBySide> {
    const both = new SideBySide(await Stack.open(openStore, BEGIN), new ReferenceLedger(BEGIN));
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
