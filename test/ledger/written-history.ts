// A stored history with transactions of all kinds.

import assert from 'node:assert/strict';
import type { Command } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Hold } from '../../src/ledger/hold.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import {
  add,
  capture,
  hold,
  MemoryLedger,
  NOW,
  refund,
  release,
  type StoredEndUser,
  startCycle,
  stopCycle,
  subtract,
} from './ledger-builders.ts';

export type Writable<Row> = { -readonly [Field in keyof Row]: Row[Field] };

export interface Stored extends StoredEndUser {
  cycles: Writable<Cycle>[];
  holds: Writable<Hold>[];
  postings: Writable<Posting>[];
  now: number;
}

export type History = readonly (readonly [day: number, command: Command | ((ledger: MemoryLedger) => Command)])[];

export function holdFor(amount: number, expiresInDays: number): Command {
  return hold(amount, { expiresInSeconds: expiresInDays * 86_400 });
}

const latestHold = ({ holds }: MemoryLedger) => holds.at(-1)?.id as string;

function latestSpent({ postings }: MemoryLedger, amount: number): string {
  const spent = postings.findLast((each) => each.amount === -amount);
  return spent?.transactionId as string;
}

const HISTORY: History = [
  [0, add(100, { validityDays: 10 })],
  [0, startCycle(50, { validityDays: 1 })],
  [0.1, subtract(120)],
  [2, subtract(7)],
  // The first hold lapses before its period ends; the second lapses after its period has ended.
  [2.1, holdFor(5, 0.1)],
  [2.3, holdFor(20, 1)],
  [3.4, holdFor(10, 1)],
  [3.5, (ledger) => capture(latestHold(ledger), 15)],
  [3.6, holdFor(11, 1)],
  [3.65, (ledger) => release(latestHold(ledger))],
  // The period ends before both captures; the first capture exceeds its hold.
  [3.7, holdFor(12, 2)],
  [3.75, holdFor(3, 2)],
  [4.1, (ledger) => capture(latestHold(ledger), 13)],
  [4.15, (ledger) => capture(latestHold(ledger), 8)],
  // The last refund opens a new cycle.
  [4.2, subtract(9)],
  [4.25, (ledger) => refund(latestSpent(ledger, 9), 4)],
  [4.3, (ledger) => refund(latestSpent(ledger, 9), 5)],
  [4.35, (ledger) => refund(latestSpent(ledger, 15), 6)],
  [4.4, (ledger) => refund(latestSpent(ledger, 7), null, { validityDays: 3 })],
  [4.5, stopCycle()],
  [4.6, startCycle(30, { validityDays: null, validityMonths: 1 })],
  [4.7, startCycle(40, { validityDays: 1, onActive: 'replace' })],
  [4.75, startCycle(40, { validityDays: 1, rolloverMax: 5, onActive: 'at_period_end' })],
  [4.8, add(9, { validityDays: VALIDITY_DAYS_MAX })],
  [5, subtract(60)],
  [8, add(1, { validityDays: 1 })],
  [8, add(2, { validityDays: 2 })],
  [8, subtract(1)],
  [8.1, stopCycle()],
  // Both holds are open when the history ends. The second hold would lapse before the first.
  [8.2, holdFor(14, 9)],
  [8.3, holdFor(31, 5)],
];

function run(history: History): Stored {
  const ledger = new MemoryLedger();
  for (const [day, command] of history) {
    ledger.now = NOW + day * DAY_MS;
    const outcome = ledger.run(typeof command === 'function' ? command(ledger) : command);
    assert.equal(outcome.refused, null, `day ${day} of the history is accepted`);
  }
  const { cycles, holds, postings, now } = ledger;
  return { cycles: [...cycles], holds: [...holds], postings, now };
}

export const WRITTEN = run(HISTORY);

export function written(history?: History): Stored {
  return structuredClone(history === undefined ? WRITTEN : run(history));
}
