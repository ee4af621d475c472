// Stores that renew cycles and change plans incorrectly on purpose.

import type { Batch, DecidedBatch, LoadedBatch } from '../../src/ledger/batch.ts';
import type { EndUserKey } from '../../src/ledger/command.ts';
import { type Cycle, renews } from '../../src/ledger/cycle.ts';
import type { Moment } from '../../src/ledger/decision.ts';
import { addMonths, DAY_MS, INSTANT_MAX, type Instant } from '../../src/ledger/instant.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import { withStates } from './broken-holds.ts';
import { SimulatedStore, type WitnessedRead } from './simulated-store.ts';

abstract class ChangesDueCycles extends SimulatedStore {
  protected abstract changed(cycle: Cycle): Cycle;

  protected override loadBatch(batch: Batch, now: Instant): LoadedBatch {
    return withStates(super.loadBatch(batch, now), ({ cycles, holds }) => ({
      cycles: cycles.map((cycle) => (renews(cycle) && cycle.end <= now ? this.changed(cycle) : cycle)),
      holds,
    }));
  }
}

export class CarriesLeftoversOver extends ChangesDueCycles {
  protected override changed(cycle: Cycle): Cycle {
    const rolloverMax = Math.max(cycle.plan.rolloverMax, cycle.remaining - cycle.held);
    return { ...cycle, plan: { ...cycle.plan, rolloverMax } };
  }
}

export class ForgetsRollover extends ChangesDueCycles {
  protected override changed(cycle: Cycle): Cycle {
    return { ...cycle, remaining: cycle.held };
  }
}

export class RollsHeldCreditsOver extends ChangesDueCycles {
  protected override changed(cycle: Cycle): Cycle {
    return { ...cycle, remaining: Math.min(cycle.remaining + cycle.held, cycle.amount) };
  }
}

export class ForgetsScheduledPlans extends ChangesDueCycles {
  protected override changed(cycle: Cycle): Cycle {
    return { ...cycle, next: null };
  }
}

abstract class ChangesStoredCycles extends SimulatedStore {
  protected abstract changed(after: Cycle, before: Cycle | undefined): Cycle;

  protected override decide(batch: Batch, loaded: LoadedBatch, moment: Moment): DecidedBatch {
    const decided = super.decide(batch, loaded, moment);
    const changes = decided.changes.map((change) => {
      const before = new Map(change.before.cycles.map((cycle) => [cycle.id, cycle]));
      const cycles = change.after.cycles.map((cycle) => this.changed(cycle, before.get(cycle.id)));
      return { ...change, after: { ...change.after, cycles } };
    });
    return { ...decided, changes };
  }
}

export class CountsThirtyDays extends ChangesStoredCycles {
  protected override changed(cycle: Cycle): Cycle {
    const { validityMonths } = cycle.plan;
    return validityMonths === null ? cycle : { ...cycle, end: cycle.start + 30 * validityMonths * DAY_MS };
  }
}

/**
 * In this store, a monthly period that starts on 28 February ends on 28 March, even if the cycle began on the 31st.
 * Reads return the wrong end, but the right end is stored: with a wrong end in the store, the rules of the ledger would
 * refuse the next renewal.
 */
export class DriftsAfterShortMonths extends SimulatedStore {
  protected override readSettled<Result extends LoadedEndUser>(
    user: EndUserKey,
    witnessed: WitnessedRead | null,
    read: () => Result,
  ): Promise<Result> {
    return super.readSettled(user, witnessed, () => {
      const result = read();
      return { ...result, state: { ...result.state, cycles: result.state.cycles.map(drifted) } };
    });
  }
}

function drifted(cycle: Cycle): Cycle {
  const { validityMonths } = cycle.plan;
  if (validityMonths === null) return cycle;
  return { ...cycle, end: Math.min(addMonths(cycle.start, validityMonths), INSTANT_MAX) };
}

export class KeepsTheFirstSchedule extends ChangesStoredCycles {
  protected override changed(after: Cycle, before: Cycle | undefined): Cycle {
    return after.next !== null && before?.next != null ? { ...after, next: before.next } : after;
  }
}
