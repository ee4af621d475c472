// Builds the demo ledger in memory by applying the rules of the ledger to the generated requests.

import { apiKeySecret, hashOf, hintOf, type Scope } from '../../accounts/api-key.ts';
import { batchOf, decideBatch, type Reference, referenceName } from '../../ledger/batch.ts';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import type { Referenced } from '../../ledger/decide-refund.ts';
import { NO_RECORDS } from '../../ledger/idempotency.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { Posting } from '../../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState } from '../../ledger/state.ts';
import { EXPIRING_DAYS_DEFAULT } from '../../store/event-log.ts';
import { OPERATOR } from '../../store/key-store.ts';
import type { CopySource, RowCounts, TableRow } from '../../store/tools/ledger-copy.ts';
import { inBatches, type LedgerRow, rowSize } from '../../store/tools/ledger-row.ts';
import type { AuditReport } from '../../store/tools/ledger-tools.ts';
import { wholeTransactions } from '../../store/transaction-history.ts';
import { type IdPosition, TransactionIds } from '../../store/transaction-ids.ts';
import { DAYS, type DemoRequest, demoHistory } from './history.ts';
import { Random } from './random.ts';

export const ACCOUNT_NAME = 'demo';
const ACCOUNT = 1;
const TAIL_DIGITS = 12;

interface History {
  readonly user: EndUserKey;
  readonly postings: Posting[];
  state: EndUserState;
}

interface DemoOptions {
  readonly seed: number;
  readonly until: Instant;
  readonly randomness: Uint8Array;
}

export class DemoLedger implements CopySource {
  readonly name = 'the demo';
  readonly hasTestClock = null;
  readonly secret: string;
  readonly #until: Instant;
  readonly #ids: TransactionIds;
  readonly #histories = new Map<string, History>();

  constructor({ seed, until, randomness }: DemoOptions) {
    this.secret = apiKeySecret('write', randomness);
    this.#until = until;
    const tails = new Random(seed);
    this.#ids = new TransactionIds({ at: 0, sequence: 0 }, () => tails.hex(TAIL_DIGITS));
    this.#decideAll(demoHistory(seed, ACCOUNT, until));
    for (const { user } of this.#histories.values()) this.#decide({ kind: 'settle', ...user }, until);
  }

  /** @param requests in chronological order; each follow-up request runs at its own `at` */
  #decideAll(requests: readonly DemoRequest[]): void {
    const waiting: DemoRequest[] = [];
    const run = ({ at, command, followUp }: DemoRequest) => {
      const outcome = this.#decide(command, at);
      if (followUp === undefined || outcome.refused !== null || outcome.transactionId === null) return;
      const next = followUp(outcome.transactionId);
      waiting.splice(waiting.findLastIndex((other) => other.at <= next.at) + 1, 0, next);
    };
    const runUntil = (end: Instant) => {
      for (let next = waiting[0]; next !== undefined && next.at < end; next = waiting[0]) {
        waiting.shift();
        run(next);
      }
    };
    for (const request of requests) {
      runUntil(request.at);
      run(request);
    }
    runUntil(this.#until);
  }

  #decide(command: Command, at: Instant): Outcome {
    const { account, endUser } = command;
    const history = this.#histories.get(endUser) ?? { user: { account, endUser }, postings: [], state: EMPTY_STATE };
    this.#ids.moveTo(at);
    const moment = { now: at, nextId: () => this.#ids.next() };
    const batch = batchOf([command]);
    const referenced = new Map(
      batch.references.map((reference) => [referenceName(reference), referencedIn(history, reference)]),
    );
    const loaded = { states: [history.state], records: NO_RECORDS, referenced };
    const { changes, outcomes } = decideBatch(batch, loaded, moment, Number.POSITIVE_INFINITY);
    for (const { postings, after } of changes) {
      history.postings.push(...postings);
      history.state = after;
      this.#histories.set(endUser, history);
    }
    return outcomes[0] as Outcome;
  }

  async clock(): Promise<IdPosition> {
    return this.#ids.position;
  }

  async counts(): Promise<RowCounts> {
    const postings = [...this.#histories.values()].reduce((sum, history) => sum + history.postings.length, 0);
    return { endUsers: this.#histories.size, postings };
  }

  async *rows(after: EndUserKey | null): AsyncGenerator<readonly LedgerRow[]> {
    yield* inBatches(this.#rowsBehind(after?.endUser ?? ''), rowSize);
  }

  *#rowsBehind(last: string): Generator<LedgerRow> {
    for (const endUser of [...this.#histories.keys()].filter((name) => name > last).sort()) {
      const { user, postings } = this.#histories.get(endUser) as History;
      for (const transaction of wholeTransactions(postings, ({ transactionId }) => transactionId))
        yield { kind: 'transaction', user, postings: transaction };
      yield { kind: 'end-user', user };
    }
  }

  async *idempotencyRecords(): AsyncGenerator<never> {}

  async tableRows(): Promise<readonly TableRow[]> {
    const createdAt = this.#until - DAYS * DAY_MS;
    const key = [1, ACCOUNT, 'write' satisfies Scope, hashOf(this.secret), hintOf(this.secret), 'Backend', createdAt];
    return [
      { table: 'accounts', values: [ACCOUNT, ACCOUNT_NAME, createdAt, EXPIRING_DAYS_DEFAULT, 0] },
      { table: 'api_keys', values: [...key, OPERATOR, null, null, this.#until] },
    ];
  }

  /** Returns the row counts without auditing anything, because `copyInto` audits the copy of this ledger. */
  async audit(): Promise<AuditReport> {
    return { ...(await this.counts()), store: [] };
  }

  async close(): Promise<void> {}
}

function referencedIn({ postings }: History, { transaction }: Reference): Referenced {
  return {
    postings: postings.filter(({ transactionId }) => transactionId === transaction),
    refunds: postings.filter(({ kind, reference }) => kind === 'refund' && reference === transaction),
  };
}
