// Sends the same commands to the real ledger and the reference model, and compares every outcome. Counts which cases
// occur: a case that never occurs is a gap in the generator of histories.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Idempotency } from '../../src/ledger/command.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { problemsOf } from '../store/temporary-ledger.ts';
import type { NewLedger } from '../store/test-ledger.ts';
import {
  type ModelCommand,
  type ModelOutcome,
  type ModelTransaction,
  type ModelUser,
  ReferenceLedger,
} from './reference-model.ts';
import { instantIn, type ModelRequest, type ModelResponse, Stack } from './stack.ts';

export const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
export const MOST = 2 ** 53 - 1;

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The same UUID in two accounts, and another UUID in the first account. */
export const USERS: readonly ModelUser[] = [
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 2, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
];

/** Cases that must occur in the random histories. */
const SIGHTS = [
  'a balance is read before its renewal is stored',
  'a COMMIT fails',
  'a key is used with another request',
  'an outcome is replayed',
  'a batch postpones an end user with too many due renewals',
  'a renewal is listed before it is stored',
  'add: BalanceTooLarge',
  'add: BalanceTooLarge because of a renewal',
  'add: accepted',
  'start-cycle: BalanceTooLarge',
  'start-cycle: CycleAlreadyActive',
  'start-cycle: accepted',
  'stop-cycle: CycleNotFound',
  'stop-cycle: accepted',
  'stop-cycle: a stopped cycle is found again',
  'stop-cycle: a superseded cycle is not found',
  'subtract: InsufficientFunds',
  'subtract: accepted',
  'the clock is behind the ledger',
  'the renewal job settles',
] as const;

export const sights = new Map<(typeof SIGHTS)[number], number>(SIGHTS.map((sight) => [sight, 0]));

export function saw(sight: (typeof SIGHTS)[number]): void {
  sights.set(sight, (sights.get(sight) ?? 0) + 1);
}

/**
 * A number of credits, or a name for one that is computed when the command is sent: the whole balance, the room for
 * more credits, or the `available` of the last refusal.
 */
export type Wanted = number | { readonly what: 'balance' | 'room' | 'available'; readonly more: 0 | 1 };

/** The index of the end user, the command, and the number of its idempotency key, if any. */
export type DraftRequest = readonly [who: number, draft: Draft, key: number | null];

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

interface Kept extends Idempotency {
  readonly command: ModelCommand;
  /** The part of the command that must be equal in a repeated request. */
  readonly asked: object;
  readonly outcome: ModelOutcome;
}

/** The real ledger and its reference model. */
export class SideBySide {
  readonly model: ReferenceLedger;
  readonly real: Stack;
  steps = 0;
  readonly #listed = new Map<ModelUser, readonly Transaction[]>();
  /** The `available` of the last refusal of each end user. */
  readonly #available = new Map<ModelUser, number>();
  /** The first request with each key of an end user, oldest first. */
  readonly #kept: Kept[] = [];
  #requests = 0;

  static async open(ledger: NewLedger): Promise<SideBySide> {
    const both = new SideBySide(await Stack.open(ledger, BEGIN), new ReferenceLedger(BEGIN));
    both.model.lookAtClock();
    return both;
  }

  private constructor(real: Stack, model: ReferenceLedger) {
    this.real = real;
    this.model = model;
  }

  setWall(wall: number): void {
    if (wall < this.model.peek()) saw('the clock is behind the ledger');
    this.model.wall = wall;
    this.real.ledger.wall = wall;
  }

  async decide(drafts: readonly DraftRequest[]): Promise<void> {
    await this.#run(
      drafts.map(([who, draft, key]) => {
        const command = this.#commandOf(USERS[who] as ModelUser, draft);
        return key === null ? command : { ...command, idempotency: this.#idempotency(`key ${key}`) };
      }),
    );
  }

  /** Runs commands while every COMMIT fails. Nothing is stored, but the time of the ledger advances. */
  async fail(drafts: readonly DraftRequest[]): Promise<void> {
    if (!this.real.ledger.canFail) return;
    await this.real.runFailing(drafts.map(([who, draft]) => this.#commandOf(USERS[who] as ModelUser, draft)));
    this.model.lookAtClock();
    saw('a COMMIT fails');
  }

  /** @param nth which of the first requests with a key to repeat, counted backwards from the latest */
  async sendAgain(nth: number): Promise<void> {
    const kept = this.#kept.at(-1 - nth);
    if (kept !== undefined) await this.#run([{ ...kept.command, idempotency: this.#idempotency(kept.key) }]);
  }

  async #run(requests: readonly ModelRequest[]): Promise<void> {
    const batches = this.real.commit.counts.batches;
    const responses = await this.real.run(requests);
    if (this.real.commit.counts.batches > batches + 1) saw('a batch postpones an end user with too many due renewals');
    assert.deepEqual(
      responses,
      requests.map((request) => this.#expected(request)),
    );
  }

  /** All equal requests with the same key have the same outcome as the first one. */
  #expected({ idempotency = null, ...command }: ModelRequest): ModelResponse {
    const { account, endUser, actor: _, ...asked } = command;
    const isKept = ({ key, command: { account: itsAccount, endUser: whose } }: Kept) =>
      key === idempotency?.key && itsAccount === account && whose === endUser;
    const kept = this.#kept.find(isKept);
    if (kept !== undefined) {
      this.model.lookAtClock();
      const isSame = isDeepStrictEqual(asked, kept.asked);
      saw(isSame ? 'an outcome is replayed' : 'a key is used with another request');
      return isSame ? { ...kept.outcome, replayOf: kept.requestId } : { refused: 'IdempotencyKeyReused' };
    }
    const user = USERS.find((each) => each.account === account && each.endUser === endUser) as ModelUser;
    const canceled = this.#canceledOf(user);
    const outcome = this.model.run(command);
    if (idempotency !== null) this.#kept.push({ ...idempotency, command, asked, outcome });
    this.#note(user, command, outcome);
    if (command.kind === 'stop-cycle' && canceled > 0) this.#noteStop(canceled === this.#canceledOf(user), outcome);
    return outcome;
  }

  #idempotency(key: string): Idempotency {
    this.#requests += 1;
    return { key, requestId: `request ${this.#requests}` };
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
      assert.equal(instantIn(id), createdAt, 'an id begins with the instant of its transaction');
      const older = all[index + 1];
      assert(older === undefined || id > older.id, 'ids sort by creation');
    }
    const before = this.#listed.get(user) ?? [];
    assert.deepEqual(all.slice(all.length - before.length), before, 'listed transactions never change');
    this.#listed.set(user, all);
  }

  async compareAll(): Promise<void> {
    for (const user of USERS) {
      await this.compareTransactions(user, 500);
      await this.compareBalance(user);
    }
    for (const isConsumed of [false, true]) {
      if (isConsumed) await this.real.ledger.consumeFeed();
      const report = await this.real.ledger.audit();
      assert.deepEqual(problemsOf(report), [], 'the audit finds nothing wrong');
      assert.equal(report.endUsers, this.model.endUsers());
    }
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
    if (isKept) saw('add: BalanceTooLarge because of a renewal');
  }

  #noteStop(isUnchanged: boolean, { refused }: ModelOutcome): void {
    if (refused !== null) saw('stop-cycle: a superseded cycle is not found');
    else if (isUnchanged) saw('stop-cycle: a stopped cycle is found again');
  }

  /** The number of canceled cycles of the end user. */
  #canceledOf(user: ModelUser): number {
    return this.model.balance(user).entries.filter(({ status }) => status === 'canceled').length;
  }
}
