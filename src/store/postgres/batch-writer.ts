// Writes batches to PostgreSQL, and finds out what became of one whose connection was lost.
//
//   decide ──▶ write and COMMIT ──▶ done
//    │             └── connection lost, or a warning ──▶ lock the same rows again, look for the batch's own transaction
//    │                      ├── there, and as safe as any other ──▶ done
//    │                      ├── not there ──▶ run again
//    │                      └── not to be found out in time ──▶ OutcomeUnknown
//    ├── deadlock, serialization failure, connection lost ──▶ nothing happened: run again, a few times
//    └── anything else ──▶ StoreUnavailable, or Internal for good

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import type { NoticeMessage } from 'pg-protocol/dist/messages.js';
import type { Command, EndUserKey, Outcome } from '../../ledger/command.ts';
import { StoreFault } from '../store.ts';
import { BatchTransaction, type Decided, type Witness } from './batch-transaction.ts';
import { bucketOf } from './bucket.ts';
import type { DatabaseClock } from './database-clock.ts';
import { keyArrays, keyOf } from './key.ts';
import { LaneSessions } from './lane-sessions.ts';
import { faultOf, isConnectionLost, isWorthRetrying } from './postgres-error.ts';
import type { StandbyWatch } from './standby-watch.ts';
import {
  begin,
  commit,
  query,
  type Statement,
  type Statements,
  statementsByBucket,
  statementsFor,
} from './statements.ts';
import { type StatementResult, sendStep } from './step.ts';

const TRIES_MAX = 10;
/** Waited between tries, times a random share and the number of the try. */
const BACKOFF_MS = 20;
/** No try begins later: a server that hangs costs each try seconds, and those who wait are many. */
const TRIES_MS = 6_000;

/** How long a batch whose COMMIT got no answer is looked for. */
const SETTLE_MS = 8_000;
const SETTLE_PAUSE_MS = 200;
/** How long one look may take: the longest wait for its lock, and some. */
const LOOK_MS = 2_000;
const LOOK = ['BEGIN', `SET LOCAL statement_timeout = '1500ms'`, `SET LOCAL lock_timeout = '1s'`];

const ROLLBACK: Statement = { name: 'rollback', text: 'ROLLBACK', types: [] };

/** The class of codes of notices that warn of nothing. */
const SUCCESS = '00';

type Outcomes = readonly (Outcome | null)[];

export const STANDBY_AWAY = 'no synchronous standby confirms what is written';

/** Of a batch that may follow the one before it in its lane, and be followed. */
interface Turn {
  readonly lane: number;
  readonly onDecided: () => void;
}

/** COMMIT got no answer, or one with a warning. */
class CommitLost extends Error {
  readonly outcomes: Outcomes;
  readonly witness: Witness | null;

  constructor(outcomes: Outcomes, witness: Witness | null, reason: string) {
    super(`COMMIT was not confirmed: ${reason}`);
    this.outcomes = outcomes;
    this.witness = witness;
  }
}

export class BatchWriter {
  readonly #sessions: LaneSessions;
  readonly #clock: DatabaseClock;
  readonly #standby: StandbyWatch;
  readonly #isPrepared: boolean;
  readonly #isChained: boolean;
  readonly #mixed: Statements = statementsFor(null);
  readonly #byBucket: readonly Statements[] | null;

  constructor(
    pool: Pool,
    clock: DatabaseClock,
    standby: StandbyWatch,
    options: { isPrepared: boolean; isCitus: boolean; isChained: boolean },
  ) {
    this.#sessions = new LaneSessions(pool);
    this.#clock = clock;
    this.#standby = standby;
    this.#isPrepared = options.isPrepared;
    this.#isChained = options.isChained;
    this.#byBucket = options.isCitus ? statementsByBucket() : null;
  }

  /**
   * @param onDecided called once the next batch of the lane may follow; on Citus never, where COMMIT is a step of its own
   * @throws StoreFault
   */
  async write(commands: readonly Command[], lane: number, onDecided: () => void): Promise<Outcomes> {
    const deadline = performance.now() + TRIES_MS;
    let isAlone = this.#byBucket !== null;
    for (let attempt = 1; ; attempt++) {
      try {
        const outcomes = await this.#attempt(commands, isAlone ? null : { lane, onDecided });
        if (outcomes !== null) return outcomes;
        // Something was made ready, and nothing has failed.
        continue;
      } catch (error) {
        if (error instanceof CommitLost || isConnectionLost(error)) this.#standby.suspect();
        // Without a witness it entered nothing but renewals, and to enter those twice does nothing.
        if (error instanceof CommitLost && error.witness !== null && (await this.#isThere(error, error.witness))) {
          return error.outcomes;
        }
        const isUndone = error instanceof CommitLost || isWorthRetrying(error) || isConnectionLost(error);
        const isLast = attempt >= TRIES_MAX || performance.now() > deadline;
        // A lost COMMIT that was looked for, and is not there, is rolled back.
        if (error instanceof CommitLost && isLast) throw new StoreFault('StoreUnavailable', error.message);
        if (!isUndone || isLast) throw faultOf(error);
        // What failed once may fail again, and takes nobody along.
        isAlone = true;
      }
      await sleep(Math.random() * BACKOFF_MS * attempt);
    }
  }

  /**
   * @param turn null for a batch that follows nobody, and that nobody follows
   * @returns null when something was made ready, and the batch has to be run again
   */
  async #attempt(commands: readonly Command[], turn: Turn | null): Promise<Outcomes | null> {
    const open = turn === null ? null : this.#sessions.takeOpen(turn.lane);
    // Nothing is awaited where one is open: see `leave`.
    const session = open ?? (await this.#sessions.take());
    const { client } = session;
    let isSound = false;
    try {
      if (this.#standby.isSuspected && (await this.#standby.isAway(client))) {
        isSound = true;
        throw new StoreFault('StoreUnavailable', STANDBY_AWAY);
      }
      const transaction = new BatchTransaction(client, this.#clock, {
        statements: this.#statementsFor(commands[0] as Command),
        isPrepared: this.#isPrepared,
        isCitus: this.#byBucket !== null,
        isChained: this.#isChained,
      });
      const decided = await transaction.decide(commands);
      if ('missing' in decided) await this.#addEndUsers(client, decided.missing);
      else if (decided.writes.length === 0) await sendStep(client, [query(ROLLBACK, [], this.#isPrepared)]);
      else {
        const committed = this.#commit(client, transaction, decided);
        if (turn !== null) {
          this.#sessions.offer(turn.lane, session);
          turn.onDecided();
        }
        await committed;
      }
      isSound = true;
      return 'missing' in decided ? null : decided.outcomes;
    } finally {
      this.#sessions.leave(session, isSound, turn?.lane ?? null);
    }
  }

  /** On Citus a batch is of one bucket, and each bucket has statements of its own. */
  #statementsFor(user: EndUserKey): Statements {
    return this.#byBucket?.[bucketOf(user)] ?? this.#mixed;
  }

  /** Gives new end users the row that is locked for them: in a transaction of its own, in the order of all locks. */
  async #addEndUsers(client: PoolClient, users: readonly EndUserKey[]): Promise<void> {
    const keys = users.map(keyOf).sort(lockOrder);
    const chain = this.#isChained ? '' : null;
    await sendStep(client, [
      query(ROLLBACK, [], this.#isPrepared),
      ...begin({ isPrepared: this.#isPrepared, isCitus: this.#byBucket !== null }),
      ...keys.map((key) => query(this.#mixed.addEndUsers, [...key, chain], this.#isPrepared)),
      ...commit(this.#isPrepared),
    ]);
  }

  async #commit(client: PoolClient, transaction: BatchTransaction, decided: Decided): Promise<void> {
    const lost = (reason: string) => new CommitLost(decided.outcomes, decided.witness, reason);
    const warning = await confirmed(client, () => transaction.commit(decided)).catch((error) => {
      throw isConnectionLost(error) ? lost(error.message) : error;
    });
    if (warning !== null) throw lost(warning);
  }

  /**
   * Whether a batch whose COMMIT was not confirmed is in the store. Its rows are locked first: as long as the lost
   * transaction is still at work, they cannot be.
   *
   * @throws StoreFault `OutcomeUnknown` when that cannot be found out in time
   */
  async #isThere(lost: CommitLost, witness: Witness): Promise<boolean> {
    const deadline = performance.now() + SETTLE_MS;
    let reason = lost.message;
    while (performance.now() < deadline) {
      try {
        return await this.#look(witness);
      } catch (error) {
        this.#standby.suspect();
        reason = (error as Error).message;
      }
      await sleep(SETTLE_PAUSE_MS);
    }
    throw new StoreFault('OutcomeUnknown', `${lost.message}, and what became of it cannot be found out: ${reason}`);
  }

  /**
   * What is found here may be on this machine only, when the wait for a standby was cut short. The lock itself is
   * logged, behind the batch: a COMMIT of it that is confirmed has the batch confirmed as well.
   */
  async #look({ user, transactionId }: Witness): Promise<boolean> {
    const client = await this.#sessions.connect();
    try {
      // Then the batch waits, or what it waited for was cut short; the look would wait as well.
      if (await this.#standby.isAway(client)) throw new Error(STANDBY_AWAY);
      const statements = [
        ...LOOK.map((text) => ({ text })),
        query(this.#statementsFor(user).lock, keyArrays([keyOf(user)]).literals(), this.#isPrepared),
        query(this.#mixed.find, [...keyOf(user), transactionId], this.#isPrepared),
      ];
      const found = (await sendStep(client, statements, LOOK_MS)).at(-1);
      if (found?.rows.length === 0) return false;
      const committing = async () => (await sendStep(client, commit(this.#isPrepared), LOOK_MS)).at(-1);
      const warning = await confirmed(client, committing);
      if (warning !== null) throw new Error(warning);
      return true;
    } finally {
      client.release(true);
    }
  }
}

/**
 * @param commit sends a COMMIT, last of all
 * @returns a warning: PostgreSQL gives one when it was told to wait for a standby no longer
 */
async function confirmed(
  client: PoolClient,
  commit: () => Promise<StatementResult | undefined>,
): Promise<string | null> {
  let warning: string | null = null;
  // By its code: the severity is in the language of the server.
  const notice = ({ code, message }: NoticeMessage) => {
    if (!code?.startsWith(SUCCESS)) warning = message ?? 'a warning';
  };
  client.on('notice', notice);
  try {
    const result = await commit();
    assert(result?.command === 'COMMIT', 'a transaction without an error commits');
    return warning;
  } finally {
    client.off('notice', notice);
  }
}

function lockOrder(a: ReturnType<typeof keyOf>, b: ReturnType<typeof keyOf>): number {
  return a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : 1);
}
