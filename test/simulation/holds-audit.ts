// Checks the holds and refunds in the postings of a simulation, without using the ledger's rules.

import type { Posting } from '../../src/ledger/posting.ts';
import type { ModelHistoryEntry } from '../model/model-types.ts';
import type { UserRows } from './disk.ts';

interface Sum {
  credits: number;
  held: number;
}

export function* faultsOfHolds({ postings, holds }: UserRows, now: number): Generator<string> {
  const periods = new Map<string, Sum>();
  const open = new Map<string, { readonly parts: Map<string, number>; readonly expiresAt: number }>();
  const spent = new Map<string, Map<string, number>>();
  for (const posting of postings) {
    const { transactionId, kind, amount, held, createdAt, expiresAt, reference, terms } = posting;
    const name = `transaction ${transactionId}`;
    const period = periodOf(posting);
    const sum = periods.get(period) ?? { credits: 0, held: 0 };
    periods.set(period, sum);
    // Credits that are refunded to an ended period expire immediately.
    if (kind !== 'refund' || terms !== null || expiresAt > createdAt) sum.credits += amount;
    sum.held += held;
    if (sum.held < 0) yield `${name} returns more credits of ${period} than are held`;
    if (sum.credits < sum.held) yield `${name} spends or holds more credits of ${period} than remain`;
    if (kind === 'hold') {
      const hold = open.get(transactionId) ?? { parts: new Map(), expiresAt: posting.holdExpiresAt ?? 0 };
      open.set(transactionId, hold);
      hold.parts.set(period, held);
    } else if (held !== 0) {
      const hold = open.get(reference ?? '');
      if (hold?.parts.get(period) !== -held) yield `${name} closes a hold that is not open`;
      hold?.parts.delete(period);
      if (hold?.parts.size === 0) open.delete(reference ?? '');
      const isAtItsInstant = kind === 'lapse' ? createdAt === hold?.expiresAt : createdAt < (hold?.expiresAt ?? 0);
      if (!isAtItsInstant) yield `${name} closes a hold at the wrong instant`;
    }
    if (kind === 'subtract' || kind === 'capture') spentOf(spent, transactionId).set(period, -amount);
    if (kind !== 'refund' || terms !== null) continue;
    const left = (spentOf(spent, reference ?? '').get(period) ?? 0) - amount;
    spentOf(spent, reference ?? '').set(period, left);
    if (left < 0) yield `${name} refunds more than was spent`;
  }
  const stored = new Set(holds.map(({ id }) => id));
  for (const id of open.keys()) if (!stored.delete(id)) yield `the open hold ${id} is not stored`;
  for (const id of stored) yield `the hold ${id} is stored, but is not open`;
  for (const [id, { expiresAt }] of open)
    if (expiresAt < now - LATE_MS_MAX) yield `the hold ${id} has not lapsed in time`;
}

const BY_TIME = ['renew', 'change-plan', 'lapse'];

/** Much longer than the interval of the job that stores lapses, which is one second. */
const LATE_MS_MAX = 60_000;

function spentOf(spent: Map<string, Map<string, number>>, id: string): Map<string, number> {
  const known = spent.get(id) ?? new Map<string, number>();
  spent.set(id, known);
  return known;
}

function periodOf({ cycleId, period }: Posting): string {
  return `period ${period} of ${cycleId}`;
}

/**
 * Ignores renewals, changes of plan and lapses that are due but not stored yet.
 *
 * @param history newest first
 */
export function differenceFromModel({ postings }: UserRows, history: readonly ModelHistoryEntry[]): string | null {
  const expected = history.toReversed().map((entry) => {
    const { id, kind, createdAt, actor, note, reference, touched } = entry;
    const shown = kind === 'stop-cycle' ? null : id;
    return { ...{ id: shown, kind, createdAt, actor, note, reference }, touched };
  });
  const found: typeof expected = [];
  let previousId = '';
  for (const posting of postings) {
    const { transactionId, kind, createdAt, actor, note, reference, cycleId: cycle, period, amount, held } = posting;
    const touched = { cycle, period, amount, held };
    const id = kind === 'stop-cycle' ? null : transactionId;
    const latest = found.at(-1);
    if (transactionId === previousId && latest !== undefined) latest.touched = [...latest.touched, touched];
    else found.push({ ...{ id, kind, createdAt, actor, note, reference }, touched: [touched] });
    previousId = transactionId;
  }
  for (const [index, entry] of expected.entries()) {
    const [wanted, stored] = [JSON.stringify(entry), JSON.stringify(found[index])];
    const isDue = stored === undefined && BY_TIME.includes(entry.kind);
    if (!isDue && wanted !== stored) return `transaction ${index} is stored as ${stored}; the model has ${wanted}`;
  }
  return found.length > expected.length
    ? `${JSON.stringify(found[expected.length])} is stored, but is not in the model`
    : null;
}
