// Decides the outcomes of a batch of commands, in order: later commands see the effects of earlier ones. Deciding has
// no side effects, so a store can decide a batch again when it retries a transaction.

import assert from 'node:assert/strict';
import { applyAll } from './apply.ts';
import {
  type Command,
  type EndUserKey,
  endUserText,
  type Idempotency,
  needs,
  type Outcome,
  type Refund,
  type WriteCommand,
} from './command.ts';
import { decide } from './decide.ts';
import type { Referenced } from './decide-refund.ts';
import type { Moment } from './decision.ts';
import {
  type IdempotencyRecord,
  type IdempotencyRecords,
  recordName,
  replayedOutcome,
  requestOf,
} from './idempotency.ts';
import type { Posting } from './posting.ts';
import { settle } from './settle.ts';
import type { EndUserState } from './state.ts';
import type { TransactionId } from './transaction-id.ts';

export interface Batch {
  readonly commands: readonly Command[];
  /** The end users of the commands, without duplicates. */
  readonly users: readonly EndUserKey[];
  /** The `endUserText` of each element of `users`. */
  readonly names: readonly string[];
  /** For each command, the index of its end user in `users`. */
  readonly userOf: readonly number[];
  /** For each command, the name of its idempotency record; null for a command without a key. */
  readonly recordNames: readonly (string | null)[];
  /** The transactions that the refunds in the batch refer to; usually empty. */
  readonly references: readonly Reference[];
}

export interface Reference {
  /** The index of the end user in `users`. */
  readonly user: number;
  readonly transaction: TransactionId;
}

export interface UserChange {
  /** The index in `batch.users`. */
  readonly index: number;
  readonly user: EndUserKey;
  readonly postings: readonly Posting[];
  readonly before: EndUserState;
  readonly after: EndUserState;
}

export interface DecidedBatch {
  /**
   * One outcome for each command. An outcome is null if its command is postponed, because the end users of the batch
   * have too many due events, or because earlier commands of the account have produced too many postings.
   */
  readonly outcomes: readonly (Outcome | null)[];
  /** One change for each end user with new postings. */
  readonly changes: readonly UserChange[];
  /** The idempotency records of keys that this batch uses for the first time. */
  readonly records: readonly IdempotencyRecord[];
}

/** Groups the commands by end user, and collects what a store must load for the commands. */
export function batchOf(commands: readonly Command[]): Batch {
  const users: EndUserKey[] = [];
  const names: string[] = [];
  const indexes = new Map<string, number>();
  const userOf = commands.map((command) => {
    const name = endUserText(command);
    const known = indexes.get(name);
    if (known !== undefined) return known;
    indexes.set(name, users.length);
    names.push(name);
    return users.push(command) - 1;
  });
  /** By `referenceName`, because many commands can refund the same transaction. */
  const references = new Map<string, Reference>();
  const recordNames = commands.map((command, index) => {
    const user = userOf[index] as number;
    const { idempotencyKey, transaction } = needs(command);
    if (transaction !== null) references.set(referenceName({ user, transaction }), { user, transaction });
    return idempotencyKey === null ? null : recordName(names[user] as string, idempotencyKey);
  });
  return { commands, users, names, userOf, recordNames, references: [...references.values()] };
}

export interface LoadedBatch {
  /** The states of `batch.users`, in the same order. */
  readonly states: readonly EndUserState[];
  /** The stored idempotency records of the keys in the batch. */
  readonly records: IdempotencyRecords;
  /** The transactions in `batch.references` that exist, by `referenceName`. */
  readonly referenced: ReadonlyMap<string, Referenced>;
}

export const NO_REFERENCED: ReadonlyMap<string, Referenced> = new Map();

export function referenceName({ user, transaction }: Reference): string {
  return `${user}/${transaction}`;
}

/**
 * When the commands of an account have produced this many postings, not counting the first of each command, the
 * account's further commands are postponed, so that commands that touch hundreds of cycles do not delay the requests of
 * other accounts. Storing this many postings takes about 40 ms.
 */
export const ACCOUNT_POSTINGS_MAX = 4_096;

/**
 * A batch stops applying due events when they have produced this many postings, which takes about 10 ms. Without the
 * limit, an end user with ten years of due daily renewals would delay other requests by more than 10 ms.
 */
export const EVENTS_PER_BATCH_MAX = 1_000;

/** @param eventsMax the batch stops applying due events when they have produced this many postings */
export function decideBatch(batch: Batch, loaded: LoadedBatch, moment: Moment, eventsMax: number): DecidedBatch {
  assert(loaded.states.length === batch.users.length, 'every end user of the batch is loaded');
  const records = new Map<string, IdempotencyRecord>();
  const progress = loaded.states.map((state): Progress => ({ before: state, state, postings: [], isSettled: false }));
  /**
   * The transaction that a command refunds, and all its earlier refunds, including those in this batch. The transaction
   * can be an automatic event that this batch has applied. It has no postings if it does not exist.
   */
  const referencedBy = ({ transactionId: transaction }: Refund, user: number): Referenced => {
    const stored = loaded.referenced.get(referenceName({ user, transaction }));
    const own = (progress[user] as Progress).postings;
    const refunds = own.filter(({ kind, reference }) => kind === 'refund' && reference === transaction);
    return {
      postings: stored?.postings ?? own.filter(({ transactionId }) => transactionId === transaction),
      refunds: [...(stored?.refunds ?? []), ...refunds],
    };
  };
  let eventsLeft = eventsMax;
  const produced = new Map<number, number>();
  const outcomes = batch.commands.map((command, index) => {
    const name = batch.recordNames[index] as string | null;
    const record = name === null ? undefined : (loaded.records.get(name) ?? records.get(name));
    if (record !== undefined) return replayedOutcome(record, command as WriteCommand);
    const producedBefore = produced.get(command.account) ?? 0;
    if (producedBefore >= ACCOUNT_POSTINGS_MAX) return null;
    const user = progress[batch.userOf[index] as number] as Progress;
    eventsLeft = Math.max(0, eventsLeft - catchUp(user, moment, eventsLeft));
    if (!user.isSettled) return null;
    const referenced = command.kind === 'refund' ? referencedBy(command, batch.userOf[index] as number) : null;
    const { outcome, postings } = decide(user.state, command, moment, referenced);
    advance(user, postings, applyAll(user.state, postings));
    if (postings.length > 1) produced.set(command.account, producedBefore + postings.length - 1);
    if (name !== null) records.set(name, recordOf(command as WriteCommand, outcome, moment));
    return outcome;
  });
  const changes = batch.users.flatMap((user, index) => changeOf(user, index, progress[index] as Progress));
  return { outcomes, changes, records: [...records.values()] };
}

function recordOf(command: WriteCommand, outcome: Outcome, { now, recordedAt = now }: Moment): IdempotencyRecord {
  const { account, endUser } = command;
  const { key, requestId } = command.idempotency as Idempotency;
  return { account, endUser, key, requestId, request: requestOf(command), outcome, recordedAt };
}

interface Progress {
  readonly before: EndUserState;
  state: EndUserState;
  readonly postings: Posting[];
  isSettled: boolean;
}

/** @returns the number of postings of the due events that were applied */
function catchUp(user: Progress, { now }: Moment, eventsMax: number): number {
  if (user.isSettled) return 0;
  const { state, postings, isComplete } = settle(user.state, now, eventsMax);
  user.isSettled = isComplete;
  advance(user, postings, state);
  return postings.length;
}

function advance(user: Progress, postings: readonly Posting[], state: EndUserState): void {
  user.state = state;
  for (const posting of postings) user.postings.push(posting);
}

function changeOf(user: EndUserKey, index: number, { before, state, postings }: Progress): UserChange[] {
  return postings.length === 0 ? [] : [{ index, user, postings, before, after: state }];
}
