// A batch of commands, decided in order as one step: later commands see what earlier ones did, and a refusal changes
// nothing for its neighbours. Pure, so that a store may decide again when its transaction has to be repeated.

import assert from 'node:assert/strict';
import { applyAll } from './apply.ts';
import {
  type Command,
  type EndUserKey,
  endUserText,
  type Idempotency,
  needs,
  type Outcome,
  type WriteCommand,
} from './command.ts';
import { decide, type Moment } from './decide.ts';
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

export interface Batch {
  readonly commands: readonly Command[];
  /** The end users concerned, each once. */
  readonly users: readonly EndUserKey[];
  /** The `endUserText` of each of them. */
  readonly names: readonly string[];
  /** For each command, the index of its end user in `users`. */
  readonly userOf: readonly number[];
  /** For each command, the name of the idempotency record that decides it; null for a command without a key. */
  readonly recordNames: readonly (string | null)[];
}

/** What a batch does to one end user. */
export interface UserChange {
  /** The index in `batch.users`. */
  readonly index: number;
  readonly user: EndUserKey;
  readonly postings: readonly Posting[];
  readonly before: EndUserState;
  readonly after: EndUserState;
}

export interface DecidedBatch {
  /** One for each command; null where more is due for the end user than this batch may enter. */
  readonly outcomes: readonly (Outcome | null)[];
  /** Of the end users for whom something happened. */
  readonly changes: readonly UserChange[];
  /** For the keys that were used for the first time. */
  readonly records: readonly IdempotencyRecord[];
}

/** Groups the commands by end user. */
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
  const recordNames = commands.map((command, index) => {
    const { idempotencyKey } = needs(command);
    return idempotencyKey === null ? null : recordName(names[userOf[index] as number] as string, idempotencyKey);
  });
  return { commands, users, names, userOf, recordNames };
}

/** What a store has loaded for a batch. */
export interface LoadedBatch {
  /** One for each of `batch.users`. */
  readonly states: readonly EndUserState[];
  /** Those of the keys in the batch that were used before. */
  readonly records: IdempotencyRecords;
}

/** @param eventsMax how many events of time the batch may enter in all, so that no batch is long */
export function decideBatch(batch: Batch, loaded: LoadedBatch, moment: Moment, eventsMax: number): DecidedBatch {
  assert(loaded.states.length === batch.users.length, 'every end user of the batch is loaded');
  const records = new Map<string, IdempotencyRecord>();
  const progress = loaded.states.map((state): Progress => ({ before: state, state, postings: [], isSettled: false }));
  let eventsLeft = eventsMax;
  const outcomes = batch.commands.map((command, index) => {
    const name = batch.recordNames[index] as string | null;
    const record = name === null ? undefined : (loaded.records.get(name) ?? records.get(name));
    if (record !== undefined) return replayedOutcome(record, command as WriteCommand);
    const user = progress[batch.userOf[index] as number] as Progress;
    eventsLeft -= catchUp(user, moment, eventsLeft);
    if (!user.isSettled) return null;
    const { outcome, postings } = decide(user.state, command, moment);
    advance(user, postings, applyAll(user.state, postings));
    if (name !== null) records.set(name, recordOf(command as WriteCommand, outcome, moment));
    return outcome;
  });
  const changes = batch.users.flatMap((user, index) => changeOf(user, index, progress[index] as Progress));
  return { outcomes, changes, records: [...records.values()] };
}

function recordOf(command: WriteCommand, outcome: Outcome, { now: recordedAt }: Moment): IdempotencyRecord {
  const { account, endUser } = command;
  const { key, requestId } = command.idempotency as Idempotency;
  return { account, endUser, key, requestId, request: requestOf(command), outcome, recordedAt };
}

/** What an end user had, has now, and what was entered for that. */
interface Progress {
  readonly before: EndUserState;
  state: EndUserState;
  readonly postings: Posting[];
  isSettled: boolean;
}

/** @returns how many events it entered */
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
