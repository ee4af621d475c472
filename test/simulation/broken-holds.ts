// Stores that handle holds and refunds incorrectly on purpose.

import type { Batch, DecidedBatch, LoadedBatch, UserChange } from '../../src/ledger/batch.ts';
import type { Moment } from '../../src/ledger/decision.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { EndUserState } from '../../src/ledger/state.ts';
import { SimulatedStore } from './simulated-store.ts';

export class ForgetsLapses extends SimulatedStore {
  protected override loadBatch(batch: Batch, now: Instant): LoadedBatch {
    return withStates(super.loadBatch(batch, now), (state) => ({
      ...state,
      holds: state.holds.filter(({ expiresAt }) => expiresAt > now),
    }));
  }
}

export class LetsHoldsLapseLate extends SimulatedStore {
  protected override loadBatch(batch: Batch, now: Instant): LoadedBatch {
    return withStates(super.loadBatch(batch, now), (state) => ({
      ...state,
      holds: state.holds.map((hold) => ({ ...hold, expiresAt: hold.expiresAt + LATE_MS })),
    }));
  }
}

const LATE_MS = 500;

export class SpendsHeldCredits extends SimulatedStore {
  protected override loadBatch(batch: Batch, now: Instant): LoadedBatch {
    const loaded = super.loadBatch(batch, now);
    if (batch.commands.some(({ kind }) => kind !== 'subtract')) return loaded;
    return withStates(loaded, ({ cycles, holds }) => ({
      cycles: cycles.map((cycle) => (cycle.held === 0 ? cycle : { ...cycle, held: 0 })),
      holds,
    }));
  }
}

export class RefundsTwice extends SimulatedStore {
  protected override loadBatch(batch: Batch, now: Instant): LoadedBatch {
    const loaded = super.loadBatch(batch, now);
    const referenced = [...loaded.referenced].map(([name, { postings }]) => [name, { postings, refunds: [] }] as const);
    return { ...loaded, referenced: new Map(referenced) };
  }
}

/** Stores the correct postings, but omits from the balance the credits that a capture does not spend. */
export class KeepsTheRestOfACapture extends SimulatedStore {
  protected override decide(batch: Batch, loaded: LoadedBatch, moment: Moment): DecidedBatch {
    const decided = super.decide(batch, loaded, moment);
    return { ...decided, changes: decided.changes.map(withoutReturned) };
  }
}

function withoutReturned(change: UserChange): UserChange {
  const returned = new Map<string, number>();
  for (const { kind, cycleId, period, amount, held } of change.postings)
    if (kind === 'capture' && held < amount) returned.set(`${cycleId}/${period}`, amount - held);
  if (returned.size === 0) return change;
  const cycles = change.after.cycles.map((cycle) => {
    const rest = returned.get(`${cycle.id}/${cycle.period}`) ?? 0;
    return rest === 0 ? cycle : { ...cycle, remaining: cycle.remaining - rest };
  });
  return { ...change, after: { ...change.after, cycles } };
}

export function withStates(loaded: LoadedBatch, change: (state: EndUserState) => EndUserState): LoadedBatch {
  return { ...loaded, states: loaded.states.map(change) };
}
