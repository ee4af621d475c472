// A batch of commands, decided in order as one step: later commands see what earlier ones did, and a refusal changes
// nothing for its neighbours. Pure, so that a store may run it again when its transaction has to be repeated.

import assert from 'node:assert/strict';
import type { Command, EndUserKey, Outcome } from './command.ts';
import { assertCycle, type Cycle, renews } from './cycle.ts';
import { decide, type Moment } from './decide.ts';
import type { Posting } from './posting.ts';
import { settle } from './settle.ts';

export interface Batch {
  readonly commands: readonly Command[];
  /** The end users concerned, each once. */
  readonly users: readonly EndUserKey[];
  /** For each command, where its end user stands in `users`. */
  readonly userOf: readonly number[];
}

/** What a batch leaves behind for one end user: the rows to insert and the rows to change. */
export interface UserChange {
  readonly user: EndUserKey;
  /** Where it stands in `batch.users`. */
  readonly index: number;
  readonly opened: readonly Cycle[];
  readonly changed: readonly { readonly before: Cycle; readonly after: Cycle }[];
  readonly postings: readonly Posting[];
}

export interface Folded {
  /** One for each command; null where the end user has more periods to catch up with than this batch may enter. */
  readonly outcomes: readonly (Outcome | null)[];
  readonly changes: readonly UserChange[];
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

/**
 * @param loaded the cycles of each of `batch.users`, in burn order: those that have not ended, and the one that renews
 * @param periodsMax how many missed periods the batch may enter in all, so that no batch is long
 */
export function fold(batch: Batch, loaded: readonly (readonly Cycle[])[], moment: Moment, periodsMax: number): Folded {
  assert(loaded.length === batch.users.length, 'every end user of the batch is loaded');
  const works = loaded.map((cycles) => ({ loaded: cycles, cycles, postings: [] as Posting[], settled: false }));
  let periodsLeft = periodsMax;
  const outcomes = batch.commands.map((command, index) => {
    const work = works[batch.userOf[index] as number] as UserWork;
    periodsLeft -= catchUp(work, moment.now, periodsLeft);
    if (!work.settled) return null;
    const decision = decide(work.cycles, command, moment);
    work.cycles = decision.cycles;
    for (const posting of decision.postings) work.postings.push(posting);
    return decision.outcome;
  });
  const changes: UserChange[] = [];
  works.forEach((work, index) => {
    if (work.postings.length > 0) changes.push(changeOf(batch.users[index] as EndUserKey, index, work));
  });
  return { outcomes, changes };
}

interface UserWork {
  readonly loaded: readonly Cycle[];
  cycles: readonly Cycle[];
  readonly postings: Posting[];
  settled: boolean;
}

/** @returns how many periods it entered */
function catchUp(work: UserWork, now: number, periodsMax: number): number {
  if (work.settled) return 0;
  const { cycles, postings, missed } = settle(work.cycles, now, periodsMax);
  work.cycles = cycles;
  work.settled = missed === postings.length;
  for (const posting of postings) work.postings.push(posting);
  return postings.length;
}

/** Rules keep every cycle in its place and add new ones at the end, so that comparing by position finds what changed. */
function changeOf(user: EndUserKey, index: number, { loaded, cycles, postings }: UserWork): UserChange {
  const changed: { before: Cycle; after: Cycle }[] = [];
  loaded.forEach((before, place) => {
    const after = cycles[place] as Cycle;
    assert(after.id === before.id && after.period === before.period, 'a cycle keeps its place');
    if (after !== before) changed.push({ before, after });
  });
  const opened = cycles.slice(loaded.length);
  const change = { user, index, opened, changed, postings };
  assertChange(change, cycles);
  return change;
}

/** Invariants 1 and 3, before anything is written: what the postings move is what the cycles change by. */
function assertChange({ opened, changed, postings }: UserChange, cycles: readonly Cycle[]): void {
  for (const cycle of opened) assertCycle(cycle);
  for (const { after } of changed) assertCycle(after);
  let moved = 0n;
  for (const posting of postings) moved += BigInt(posting.amount);
  let difference = 0n;
  for (const cycle of opened) difference += BigInt(cycle.remaining);
  for (const { before, after } of changed) difference += BigInt(after.remaining) - BigInt(before.remaining);
  assert(moved === difference, 'the postings sum to the change of what remains');
  assert(cycles.filter(renews).length <= 1, 'an end user has at most one active cycle');
}
