// Runs commands on given days, and formats each resulting event as one line.

import assert from 'node:assert/strict';
import { deriveEvents } from '../../src/events/derive.ts';
import type { Command } from '../../src/ledger/command.ts';
import { DAY_MS, type Instant } from '../../src/ledger/instant.ts';
import type { PostingKind } from '../../src/ledger/posting.ts';
import { type EventSettings, type EventType, type LedgerEvent, thresholdOf } from '../../src/store/event-log.ts';
import { ADA, MemoryLedger, NOW } from './ledger-builders.ts';

/** Days are counted from `NOW`. */
export type EventHistory = readonly (readonly [day: number, command: Command | ((ledger: MemoryLedger) => Command)])[];

/** One millisecond as a fraction of a day. */
export const MS = 1 / DAY_MS;

export function settingsOf(thresholds: readonly string[] = [], expiringDays = 7): EventSettings {
  return {
    expiringDays,
    thresholds: thresholds.map((text) => {
      const threshold = thresholdOf(text);
      assert(threshold !== null, `${text} is a threshold`);
      return threshold;
    }),
  };
}

export function dayAt(day: number): Instant {
  return NOW + Math.round(day * DAY_MS);
}

export function latestOf({ postings }: MemoryLedger, kind: PostingKind): string {
  const id = postings.findLast((posting) => posting.kind === kind)?.transactionId;
  assert(id !== undefined, `the history has a posting of kind ${kind}`);
  return id;
}

export function ledgerAfter(history: EventHistory): MemoryLedger {
  const ledger = new MemoryLedger();
  for (const [day, command] of history) {
    ledger.now = dayAt(day);
    ledger.accept(typeof command === 'function' ? command(ledger) : command);
  }
  return ledger;
}

export function eventsOf(
  history: EventHistory,
  { until = history.at(-1)?.[0] ?? 0, settings = settingsOf() }: { until?: number; settings?: EventSettings } = {},
): readonly LedgerEvent[] {
  const { postings } = ledgerAfter(history);
  return deriveEvents({ user: ADA, from: null, postings, until: dayAt(until), settings }).events;
}

/** Returns lines such as `3: balance.low 20 (25 to 15)`. */
export function balanceLines(events: readonly LedgerEvent[]): readonly string[] {
  return events
    .filter(({ type }) => type.startsWith('balance.'))
    .map(({ type, at, data: { threshold, thresholds, previous_balance: before, balance } }) =>
      [`${dayText(at)}:`, type, threshold ?? thresholds, `(${before} to ${balance})`]
        .filter((part) => String(part ?? '') !== '')
        .join(' '),
    );
}

/** Returns lines such as `3: credits.expired 10`. */
export function linesOf(events: readonly LedgerEvent[], ...types: readonly EventType[]): readonly string[] {
  return events
    .filter(({ type }) => types.includes(type))
    .map(({ type, at, data }) => `${dayText(at)}: ${type} ${data.amount}`);
}

function dayText(at: Instant): string {
  const day = Math.round((at - NOW) / DAY_MS);
  const ms = at - dayAt(day);
  if (Math.abs(ms) > 1) return String((at - NOW) / DAY_MS);
  return ms === 0 ? String(day) : `${day} ${ms < 0 ? '-' : '+'} 1 ms`;
}
