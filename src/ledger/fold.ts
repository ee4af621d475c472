// A batch of commands, decided in order as one step: later commands see what earlier ones did, and a refusal changes
// nothing for its neighbours. Pure, so that a store may run it again when its transaction has to be repeated.

import assert from 'node:assert/strict';
import { sumToNothing } from './amount.ts';
import type { Command, EndUserKey, Outcome } from './command.ts';
import { assertCycle, type Cycle, renews } from './cycle.ts';
import { decide, type Moment } from './decide.ts';
import {
  type IdempotencyRecord,
  type IdempotencyRecords,
  idempotencyOf,
  nameOf,
  replayedOutcome,
  requestOf,
} from './idempotency.ts';
import type { Instant } from './instant.ts';
import type { Posting } from './posting.ts';
import { settle } from './settle.ts';

export interface Batch {
  readonly commands: readonly Command[];
  /** The end users concerned, each once. */
  readonly users: readonly EndUserKey[];
  /** For each command, where its end user stands in `users`. */
  readonly userOf: readonly number[];
}

/** What a batch leaves behind for one end user: the rows to insert and the rows to change, and what they were made from. */
export interface UserChange {
  readonly user: EndUserKey;
  /** Where it stands in `batch.users`. */
  readonly index: number;
  readonly opened: readonly Cycle[];
  readonly changed: readonly { readonly before: Cycle; readonly after: Cycle }[];
  readonly postings: readonly Posting[];
  /** The cycles as loaded, and as they are now. */
  readonly cycles: { readonly before: readonly Cycle[]; readonly after: readonly Cycle[] };
}

export interface Folded {
  /** One for each command; null where the end user has more periods to catch up with than this batch may enter. */
  readonly outcomes: readonly (Outcome | null)[];
  readonly changes: readonly UserChange[];
  /** To be kept for the keys that were used for the first time. */
  readonly answers: readonly NewRecord[];
}

export interface NewRecord extends IdempotencyRecord {
  /** Which of the batch's commands it answers. */
  readonly index: number;
}

/** Groups the commands by end user. */
export function batchOf(commands: readonly Command[]): Batch {
  const users: EndUserKey[] = [];
  const indexes = new Map<string, number>();
  const userOf = commands.map((command) => {
    const key = `${command.account}/${command.endUser}`;
    const known = indexes.get(key);
    if (known !== undefined) return known;
    indexes.set(key, users.length);
    return users.push(command) - 1;
  });
  return { commands, users, userOf };
}

/** What a store has of the end users of a batch. */
export interface LoadedBatch {
  /** The cycles of each of `batch.users`, in burn order: those that have not ended, and the one that renews. */
  readonly cycles: readonly (readonly Cycle[])[];
  /** Those of the keys in the batch that were used before. */
  readonly answers: IdempotencyRecords;
}

/** @param periodsMax how many missed periods the batch may enter in all, so that no batch is long */
export function fold(batch: Batch, loaded: LoadedBatch, moment: Moment, periodsMax: number): Folded {
  assert(loaded.cycles.length === batch.users.length, 'every end user of the batch is loaded');
  const kept = new BatchRecords(loaded.answers, moment.now);
  const works = loaded.cycles.map(workOn);
  let periodsLeft = periodsMax;
  const outcomes = batch.commands.map((command, index) => {
    const name = keptNameOf(command);
    const again = kept.outcomeOf(command, name);
    if (again !== null) return again;
    const work = works[batch.userOf[index] as number] as UserWork;
    periodsLeft -= catchUp(work, moment.now, periodsLeft);
    if (!work.settled) return null;
    const decision = decide(work.cycles, command, moment);
    work.cycles = decision.cycles;
    for (const posting of decision.postings) work.postings.push(posting);
    if (name !== null) kept.keep(name, command, index, decision.outcome);
    return decision.outcome;
  });
  return { outcomes, changes: changesOf(batch.users, works), answers: [...kept.fresh.values()] };
}

/** What time alone does, where nobody commands anything. */
export interface FoldedRenewals {
  readonly changes: readonly UserChange[];
  /** How many of those that change have no period left to catch up with. */
  readonly settled: number;
  /** How many periods were entered. */
  readonly entered: number;
}

/**
 * The same as a command `renew` for each of these end users, of which no two are the same.
 *
 * @param loaded the cycles of each of them, as for `fold`
 */
export function foldRenewals(
  users: readonly EndUserKey[],
  loaded: readonly { readonly cycles: readonly Cycle[] }[],
  now: Instant,
  periodsMax: number,
): FoldedRenewals {
  assert(loaded.length === users.length, 'every end user is loaded');
  const works = loaded.map(({ cycles }) => workOn(cycles));
  let periodsLeft = periodsMax;
  for (const work of works) periodsLeft -= catchUp(work, now, periodsLeft);
  const settled = works.filter((work) => work.settled && work.postings.length > 0).length;
  return { changes: changesOf(users, works), settled, entered: periodsMax - periodsLeft };
}

/** The answers that are known when a command is decided: those that were stored, and those of earlier commands. */
class BatchRecords {
  readonly fresh = new Map<string, NewRecord>();
  readonly #stored: IdempotencyRecords;
  readonly #now: Instant;

  constructor(stored: IdempotencyRecords, now: Instant) {
    this.#stored = stored;
    this.#now = now;
  }

  /** Null when its key is new, or it has none. */
  outcomeOf(command: Command, name: string | null): Outcome | null {
    if (name === null) return null;
    const answer = this.#stored.get(name) ?? this.fresh.get(name);
    return answer ? replayedOutcome(answer, command) : null;
  }

  keep(name: string, command: Command, index: number, outcome: Outcome): void {
    const idempotency = idempotencyOf(command);
    assert(idempotency !== null, 'only what has a key has a name to be kept by');
    const { account, endUser } = command;
    const { key, requestId } = idempotency;
    const request = requestOf(command);
    const answer = { account, endUser, key, requestId, request, outcome, answeredAt: this.#now, index };
    this.fresh.set(name, answer);
  }
}

/** Put together once for each command: to look it up costs less than to write it. Null where it has no key. */
function keptNameOf(command: Command): string | null {
  const idempotency = idempotencyOf(command);
  return idempotency === null ? null : nameOf(command, idempotency.key);
}

/** What an end user had, has now, and what was entered for that. */
interface UserWork {
  readonly loaded: readonly Cycle[];
  cycles: readonly Cycle[];
  readonly postings: Posting[];
  /** Whether no period is left to catch up with. */
  settled: boolean;
}

function workOn(loaded: readonly Cycle[]): UserWork {
  return { loaded, cycles: loaded, postings: [], settled: false };
}

/** @returns how many periods it entered */
function catchUp(work: UserWork, now: Instant, periodsMax: number): number {
  if (work.settled) return 0;
  const { cycles, postings, missed } = settle(work.cycles, now, periodsMax);
  work.cycles = cycles;
  work.settled = missed === postings.length;
  for (const posting of postings) work.postings.push(posting);
  return postings.length;
}

/** Of those to whom something happened. */
function changesOf(users: readonly EndUserKey[], works: readonly UserWork[]): UserChange[] {
  const changes: UserChange[] = [];
  for (let index = 0; index < works.length; index++) {
    const work = works[index] as UserWork;
    if (work.postings.length > 0) changes.push(changeOf(users[index] as EndUserKey, index, work));
  }
  return changes;
}

/** Rules keep every cycle in its place and add new ones at the end, so that comparing by position finds what changed. */
function changeOf(user: EndUserKey, index: number, { loaded, cycles, postings }: UserWork): UserChange {
  const changed: { before: Cycle; after: Cycle }[] = [];
  for (let place = 0; place < loaded.length; place++) {
    const before = loaded[place] as Cycle;
    const after = cycles[place] as Cycle;
    if (after === before) continue;
    assert(after.id === before.id && after.period === before.period, 'a cycle keeps its place');
    changed.push({ before, after });
  }
  const opened = cycles.slice(loaded.length);
  const change = { user, index, opened, changed, postings, cycles: { before: loaded, after: cycles } };
  assertChange(change);
  return change;
}

/** Invariants 1 and 3, before anything is written: what the postings move is what the cycles change by. */
function assertChange({ opened, changed, postings, cycles }: UserChange): void {
  for (const cycle of opened) assertCycle(cycle);
  for (const { after } of changed) assertCycle(after);
  const left = postings.map(({ amount }) => amount);
  for (const { remaining } of opened) left.push(-remaining);
  for (const { before, after } of changed) left.push(before.remaining - after.remaining);
  assert(sumToNothing(left), 'the postings sum to the change of what remains');
  // Where none that renews has come, there are no more of them than before.
  if (opened.some(renews) || changed.some(({ after }) => renews(after)))
    assert(cycles.after.filter(renews).length <= 1, 'an end user has at most one active cycle');
}
