// Stores that are broken on purpose, each with a bug that has lost money in other systems. The simulation must catch
// all of them.

import type { Batch, DecidedBatch, LoadedBatch } from '../../src/ledger/batch.ts';
import { type Command, type EndUserKey, endUserText, type Outcome } from '../../src/ledger/command.ts';
import type { Moment } from '../../src/ledger/decision.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { postingTo } from '../../src/ledger/posting.ts';
import type { LoadedEndUser } from '../../src/store/loaded-end-user.ts';
import type { Totals } from '../../src/store/totals.ts';
import { TransactionIds } from '../../src/store/transaction-ids.ts';
import {
  ForgetsLapses,
  KeepsTheRestOfACapture,
  LetsHoldsLapseLate,
  RefundsTwice,
  SpendsHeldCredits,
} from './broken-holds.ts';
import {
  CarriesLeftoversOver,
  CountsThirtyDays,
  DriftsAfterShortMonths,
  ForgetsRollover,
  ForgetsScheduledPlans,
  KeepsTheFirstSchedule,
  RollsHeldCreditsOver,
} from './broken-plans.ts';
import type { Lock, UserRows } from './disk.ts';
import { LetsTimePassTooEarly, type SimulatedEvents, StoresEventsLast } from './simulated-events.ts';
import { SimulatedStore, type Staged, type WitnessedRead } from './simulated-store.ts';

type Outcomes = readonly (Outcome | null)[];

class AcknowledgesBeforeCommit extends SimulatedStore {
  protected override async commit(staged: Staged): Promise<Outcomes | null> {
    const { time, chance } = this.options;
    time.after(chance.delay(100), () => this.apply(staged), this.owner);
    return staged.decided.outcomes;
  }
}

/** Behaves like a disk that did not flush its cache. */
class LosesTheLastCommitInACrash extends SimulatedStore {
  protected override async commit(staged: Staged, lock: Lock): Promise<Outcomes | null> {
    const names = staged.decided.changes.map(({ user }) => endUserText(user));
    const before = new Map(names.map((name) => [name, copyOf(this.disk.users.get(name))]));
    const outcomes = await super.commit(staged, lock);
    const { time } = this.options;
    const { owner } = this;
    time.after(
      20,
      () => {
        if (owner.isAlive) return;
        for (const [name, rows] of before) {
          if (rows === undefined) this.disk.users.delete(name);
          else this.disk.users.set(name, rows);
        }
      },
      null,
    );
    return outcomes;
  }
}

/** The disk never changes a cycle or a posting in place, so the copy can share these objects. */
function copyOf(rows: UserRows | undefined): UserRows | undefined {
  if (rows === undefined) return undefined;
  return { ...rows, cycles: rows.cycles.slice(), live: rows.live.slice(), postings: rows.postings.slice() };
}

class AppliesTwiceOnALostReply extends SimulatedStore {
  protected override apply(staged: Staged): void {
    super.apply(staged);
    if (!this.options.chance.happens(0.02)) return;
    const commands = staged.batch.commands.map((command) => ({ ...command, idempotency: null }) as Command);
    this.disk.commit(this.stage(commands).decided);
  }
}

class StoresRecordsApart extends SimulatedStore {
  protected override apply(staged: Staged): void {
    const { changes, records, outcomes } = staged.decided;
    this.disk.commit({ changes, records: [] });
    this.options.witness.committed(staged.batch.commands, outcomes, staged);
    const { time, chance } = this.options;
    time.after(chance.delay(20), () => this.disk.commit({ changes: [], records }), this.owner);
  }
}

class BelievesTheWallClock extends SimulatedStore {
  protected override tick(): Instant {
    return Math.min(Math.floor(this.disk.wall()), super.tick());
  }

  protected override idsAt(now: Instant): Moment['nextId'] {
    if (now >= this.disk.ids.position.at) return super.idsAt(now);
    const ids = new TransactionIds({ at: now, sequence: this.options.chance.between(1, 2 ** 20) });
    return () => ids.next();
  }
}

class AnswersInTheWrongOrder extends SimulatedStore {
  override async write(commands: readonly Command[]): Promise<Outcomes> {
    const outcomes = await super.write(commands);
    const reversed = outcomes.toReversed();
    // Reverse only outcomes that the server can format. Any other outcome would cause an internal error, before the
    // auditor could notice the reversal.
    return commands.every((command, place) => canBeWritten(command, reversed[place])) ? reversed : outcomes;
  }
}

function canBeWritten({ kind }: Command, outcome: Outcomes[number] | undefined): boolean {
  if (outcome == null || outcome.refused !== null || kind === 'add' || kind === 'subtract') return true;
  if (kind === 'refund') return outcome.refund !== undefined;
  return kind === 'start-cycle' || kind === 'stop-cycle' ? outcome.cycle !== undefined : outcome.hold !== undefined;
}

class SpendsExpiredCredits extends SimulatedStore {
  protected override decide(batch: Batch, loaded: LoadedBatch, moment: Moment): DecidedBatch {
    const decided = super.decide(batch, loaded, moment);
    const [command] = batch.commands;
    const isRefused = decided.outcomes[0]?.refused === 'InsufficientFunds' && decided.changes.length === 0;
    if (batch.commands.length > 1 || command?.kind !== 'subtract' || !isRefused) return decided;
    const { amount, actor } = command;
    const before = this.disk.load(command, 0);
    const expired = before.cycles.find(({ end, remaining }) => end <= moment.now && remaining >= amount);
    if (expired === undefined) return decided;
    const entry = { transactionId: moment.nextId(), kind: command.kind, createdAt: moment.now, actor, note: null };
    const postings = [postingTo(expired, -amount, entry)];
    const after = {
      ...before,
      cycles: before.cycles.map((cycle) =>
        cycle === expired ? { ...cycle, remaining: cycle.remaining - amount } : cycle,
      ),
    };
    const accepted: Outcome = { refused: null, transactionId: entry.transactionId };
    const records = decided.records.map((record) => ({ ...record, outcome: accepted }));
    return { outcomes: [accepted], changes: [{ index: 0, user: command, postings, before, after }], records };
  }
}

class WritesWithoutLocks extends SimulatedStore {
  protected override async lock(names: readonly string[]): Promise<Lock> {
    return { names, owner: this.owner, granted: () => {}, isCommitting: false };
  }
}

class CallsTheUnknownUndone extends SimulatedStore {
  override async write(commands: readonly Command[]): Promise<Outcomes> {
    try {
      return await super.write(commands);
    } catch (error) {
      throw Object.assign(error as Error, { code: 'StoreUnavailable' });
    }
  }
}

class ShowsRenewalsTooEarly extends SimulatedStore {
  protected override async readSettled<Result extends LoadedEndUser>(
    user: EndUserKey,
    witnessed: WitnessedRead | null,
    read: () => Result,
  ): Promise<Result> {
    const result = read();
    if (witnessed !== null) this.options.witness.read(witnessed, user, result.now);
    return result;
  }
}

class CountsTwice extends SimulatedStore {
  protected override saveTotals(totals: Totals, count: number): void {
    super.saveTotals(totals, this.options.chance.happens(0.05) ? 0 : count);
  }
}

function storeWith(Events: typeof SimulatedEvents): typeof SimulatedStore {
  return class extends SimulatedStore {
    static override readonly needsEvents = true;

    protected override eventLog(): SimulatedEvents {
      return new Events(this.disk, this.owner, this.options);
    }
  };
}

export const BROKEN_STORES = {
  nothing: SimulatedStore,
  'acknowledges before its commit': AcknowledgesBeforeCommit,
  'loses the last commit in a crash': LosesTheLastCommitInACrash,
  'repeats a commit after a lost reply': AppliesTwiceOnALostReply,
  'stores idempotency records outside the transaction': StoresRecordsApart,
  'revives expired credits if the clock jumps back': BelievesTheWallClock,
  'returns outcomes in the wrong order': AnswersInTheWrongOrder,
  'lets more credits roll over than the maximum': CarriesLeftoversOver,
  'lets no credits roll over': ForgetsRollover,
  'lets held credits roll over': RollsHeldCreditsOver,
  'renews a cycle although another plan is scheduled': ForgetsScheduledPlans,
  'keeps a scheduled plan when another one replaces it': KeepsTheFirstSchedule,
  'counts a month as 30 days': CountsThirtyDays,
  'shows monthly periods that drift after a shorter month': DriftsAfterShortMonths,
  'spends expired credits': SpendsExpiredCredits,
  'writes without locks': WritesWithoutLocks,
  'reports an unknown outcome as if nothing happened': CallsTheUnknownUndone,
  'shows renewals and lapses before an earlier write is stored': ShowsRenewalsTooEarly,
  'counts a part of the feed twice': CountsTwice,
  'stores the position in the feed before the events': storeWith(StoresEventsLast),
  'derives time-driven events before an earlier write is stored': storeWith(LetsTimePassTooEarly),
  'forgets to return the credits of holds that lapse': ForgetsLapses,
  'lets holds lapse late': LetsHoldsLapseLate,
  'spends held credits': SpendsHeldCredits,
  'refunds a transaction twice': RefundsTwice,
  'keeps the credits that a capture returns': KeepsTheRestOfACapture,
} as const;

export type Control = keyof typeof BROKEN_STORES;

export const CONTROLS = Object.keys(BROKEN_STORES).filter((name) => name !== 'nothing') as Control[];
