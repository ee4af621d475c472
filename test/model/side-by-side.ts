// Sends the same commands to the real ledger and to the reference model, and compares every outcome.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Idempotency } from '../../src/ledger/command.ts';
import { idsBetween } from '../../src/ledger/transaction-id.ts';
import type { HistoryFilter } from '../../src/store/transaction-history.ts';
import { problemsOf } from '../store/temporary-ledger.ts';
import type { NewLedger } from '../store/test-ledger.ts';
import { type Draft, Drafts, type StartDraft } from './drafts.ts';
import { LAST_INSTANT } from './model-end-user.ts';
import type { ModelBalance, ModelCommand, ModelHistoryEntry, ModelOutcome, ModelUser } from './model-types.ts';
import { ReferenceLedger } from './reference-model.ts';
import { saw, sawOutcome, sightsOfTurn } from './sights.ts';
import { instantIn, type ModelRequest, type ModelResponse, Stack } from './stack.ts';

export const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);

const POINTS_MAX = 1_000;

const UUID_VERSION_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const USERS: readonly ModelUser[] = [
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 2, endUser: '5f0c6f7e-0000-4000-8000-000000000001' },
  { account: 1, endUser: '5f0c6f7e-0000-4000-8000-000000000002' },
];

export type DraftRequest = readonly [who: number, draft: Draft, key: number | null];

interface Kept extends Idempotency {
  readonly command: ModelCommand;
  readonly asked: object;
  readonly outcome: ModelOutcome;
}

export interface ComparedStore {
  readonly newLedger: NewLedger;
  /** True if the renewal job may find a due event late, because the store defers balances. */
  readonly isDueFoundLate?: boolean;
}

export class SideBySide {
  readonly model: ReferenceLedger;
  readonly real: Stack;
  readonly isDueFoundLate: boolean;
  steps = 0;
  readonly #drafts: Drafts;
  readonly #listed = new Map<ModelUser, readonly { readonly id: string }[]>();
  readonly #answered = new Map<ModelUser, Map<number, ModelBalance>>(USERS.map((user) => [user, new Map()]));
  readonly #lapses = new Map<string, number>();
  readonly #kept: Kept[] = [];
  #requests = 0;

  static async open({ newLedger, isDueFoundLate = false }: ComparedStore): Promise<SideBySide> {
    const both = new SideBySide(await Stack.open(newLedger, BEGIN), new ReferenceLedger(BEGIN), isDueFoundLate);
    both.model.lookAtClock();
    return both;
  }

  private constructor(real: Stack, model: ReferenceLedger, isDueFoundLate: boolean) {
    this.isDueFoundLate = isDueFoundLate;
    this.real = real;
    this.model = model;
    this.#drafts = new Drafts(model);
  }

  setWall(wall: number): void {
    if (wall < this.model.peek()) saw('the clock is earlier than the time of the ledger');
    this.model.wall = wall;
    this.real.ledger.wall = wall;
  }

  async decide(drafts: readonly DraftRequest[]): Promise<void> {
    await this.#run(
      drafts.map(([who, draft, key]) => {
        const command = this.#drafts.commandOf(USERS[who] as ModelUser, draft);
        return key === null ? command : { ...command, idempotency: this.#idempotency(`key ${key}`) };
      }),
    );
  }

  /** Sends the commands while every COMMIT fails: nothing is stored, but the time of the ledger advances. */
  async fail(drafts: readonly DraftRequest[]): Promise<void> {
    if (!this.real.ledger.canFail) return;
    await this.real.runFailing(drafts.map(([who, draft]) => this.#drafts.commandOf(USERS[who] as ModelUser, draft)));
    this.model.lookAtClock();
    saw('a COMMIT fails');
  }

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
      requests.map((request, index) => this.#expected(request, responses[index] as ModelResponse)),
    );
  }

  /** Predicts the response. Uses only the transaction ID from the real `response`. */
  #expected({ idempotency = null, ...command }: ModelRequest, response: ModelResponse): ModelResponse {
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
    const id = response.refused === null ? response.transactionId : null;
    const outcome = this.#decided(command, id ?? 'no transaction');
    if (idempotency !== null) this.#kept.push({ ...idempotency, command, asked, outcome });
    return outcome;
  }

  #decided(command: ModelCommand, id: string): ModelOutcome {
    const { account, endUser } = command;
    const user = USERS.find((each) => each.account === account && each.endUser === endUser) as ModelUser;
    const lapsesAt = 'holdId' in command ? (this.#lapses.get(command.holdId) ?? null) : null;
    const before = { now: this.model.peek(), balance: this.model.peekBalance(user), lapsesAt };
    const outcome = this.model.run(command, id);
    sawOutcome(command, outcome, before, this.model.peekBalance(user));
    if ('available' in outcome) this.#drafts.refused(user, outcome.available);
    if (outcome.refused !== null || outcome.transactionId === null) return outcome;
    this.#drafts.accepted(outcome.transactionId);
    if (outcome.hold !== undefined) this.#lapses.set(outcome.hold.id, outcome.hold.expiresAt);
    // The transaction may change a balance that was read at the same instant.
    this.#answered.get(user)?.delete(before.now);
    return outcome;
  }

  #idempotency(key: string): Idempotency {
    this.#requests += 1;
    return { key, requestId: `request ${this.#requests}` };
  }

  async compareBalance(user: ModelUser): Promise<void> {
    const { ahead, now, ...balance } = await this.real.balance(user);
    if (ahead.renewal) saw('a balance is read before its renewal is stored');
    if (ahead.lapse) saw('a balance is read before a lapse is stored');
    assert.deepEqual(balance, this.model.balance(user));
    assert.equal(now, this.model.peek(), 'the ledger and the model are at the same instant');
    this.#answered.get(user)?.set(now, balance);
  }

  async comparePreview(user: ModelUser, draft: StartDraft): Promise<void> {
    const command = this.#drafts.startOf(user, draft);
    const { now, preview } = await this.real.preview(command);
    assert.deepEqual(preview, this.model.preview(command));
    assert.equal(now, this.model.peek(), 'the ledger and the model are at the same instant');
    if (preview.refused !== null) saw('preview: refused');
    else
      saw(preview.startsAt > now ? 'preview: a plan that would begin later' : 'preview: a cycle that would start now');
    if (preview.refused === null && preview.expiring > 0) saw('preview: credits would expire');
  }

  /** If the balance at a past instant was also read at that instant, the two balances must be equal. */
  async compareBalancesAt(user: ModelUser, points: readonly Point[]): Promise<void> {
    const instants = new Set(points.map((point) => this.#instantOf(user, point)));
    const ascending = [...instants].toSorted((a, b) => a - b);
    const { now, balances } = await this.real.balancesAt(user, ascending);
    this.model.lookAtClock();
    assert.equal(now, this.model.peek(), 'the ledger and the model are at the same instant');
    for (const [index, balance] of balances.entries()) {
      const at = ascending[index] as number;
      const message = `the balance at ${at}, ${at - now} ms from now`;
      assert.deepEqual(balance, this.model.balanceAt(user, at), message);
      if (at < now) saw('a past balance is read');
      if (at > now) saw('a future balance is read');
      const answered = this.#answered.get(user)?.get(at);
      if (answered === undefined || at >= now) continue;
      saw('a past balance equals the balance that was read at that instant');
      assert.deepEqual(balance, answered, message);
    }
  }

  #instantOf(user: ModelUser, { from, nth, ms }: Point): number {
    const instants = {
      now: [this.model.peek()],
      answered: [...(this.#answered.get(user)?.keys() ?? [])],
      command: this.model.instantsOf(user),
      boundary: this.model.boundaries().toReversed(),
    }[from];
    const instant = instants.at(-1 - (nth % Math.max(instants.length, 1))) ?? this.model.peek();
    return Math.min(Math.max(instant + ms, 0), LAST_INSTANT);
  }

  async compareTransactions(user: ModelUser, limit: number): Promise<void> {
    const { all, isAhead } = await this.real.transactions(user, limit);
    if (isAhead) saw('a renewal is listed before it is stored');
    const expected = this.model.transactions(user);
    assert.deepEqual(
      all,
      expected.map(({ touched: _, reference: __, ...transaction }) => transaction),
    );
    for (const [index, { id, createdAt }] of all.entries()) {
      assert.match(id, UUID_VERSION_4);
      assert.equal(instantIn(id), createdAt, 'a transaction ID begins with the instant of its transaction');
      const older = all[index + 1];
      assert(older === undefined || id > older.id, 'transaction IDs sort by creation time');
    }
    const before = this.#listed.get(user) ?? [];
    assert.deepEqual(all.slice(all.length - before.length), before, 'listed transactions never change');
    this.#listed.set(user, all);
  }

  async compareHistory(user: ModelUser, { limit, filter, which }: HistoryStep): Promise<void> {
    const { kinds, notePrefix, last } = filter;
    const until = this.model.peek();
    const from = last === undefined ? 0 : Math.max(until - last, 0);
    const wanted: HistoryFilter = {
      kinds,
      notePrefix,
      ...(last === undefined ? {} : { within: idsBetween(from, until) }),
    };
    const { all, isAhead } = await this.real.history(user, limit, wanted);
    if (isAhead) saw('a lapse is listed before it is stored');
    const expected = this.model.history(user).filter(({ kind, note, createdAt }) => {
      if (kinds !== undefined && !kinds.some((each) => each === kind)) return false;
      return createdAt >= from && (notePrefix === undefined || note?.startsWith(notePrefix) === true);
    });
    if (expected.length > 0 && (kinds !== undefined || notePrefix !== undefined)) saw('a history is filtered');
    assert.deepEqual(all.map(withoutUnknownId(expected)), expected);
    const id = this.#drafts.someId(which);
    const entry = this.model.history(user).find((each) => each.id === id);
    const found = await this.real.refundable(user, id);
    assert.equal(found, entry === undefined ? null : (entry.refundable ?? 0), 'a transaction is found by its ID');
  }

  async compareAll(): Promise<void> {
    for (const user of USERS) {
      await this.compareTransactions(user, 500);
      await this.compareHistory(user, { limit: 100, filter: {}, which: 0 });
      await this.compareBalance(user);
      const answered = [...(this.#answered.get(user)?.keys() ?? [])];
      await this.compareBalancesAt(
        user,
        answered.slice(-POINTS_MAX).map((_, nth) => ({ from: 'answered', nth, ms: 0 })),
      );
    }
    for (const user of USERS) {
      const turns = this.model.turnsOf(user);
      for (const [index, turn] of turns.entries()) for (const sight of sightsOfTurn(turn, turns[index - 1])) saw(sight);
    }
    for (const isConsumed of [false, true]) {
      if (isConsumed) await this.real.ledger.consumeFeed();
      const report = await this.real.ledger.audit();
      assert.deepEqual(problemsOf(report), [], 'the audit finds nothing wrong');
      assert.equal(report.endUsers, this.model.endUsers());
    }
  }
}

export interface Point {
  readonly from: 'now' | 'answered' | 'command' | 'boundary';
  readonly nth: number;
  readonly ms: number;
}

export interface HistoryStep {
  readonly limit: number;
  readonly filter: Pick<HistoryFilter, 'kinds' | 'notePrefix'> & {
    readonly last?: number | undefined;
  };
  readonly which: number;
}

/** The stop of a replaced cycle has no ID in the model, because no response contains the ID. */
function withoutUnknownId(expected: readonly ModelHistoryEntry[]) {
  return (entry: ModelHistoryEntry, index: number) => (expected[index]?.id === null ? { ...entry, id: null } : entry);
}
