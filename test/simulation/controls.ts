// Stores that are broken on purpose, each in one way that has cost somebody money. A simulation that does not catch every
// one of them proves nothing.

import { ACCEPTED, type Command, type EndUserKey, type Outcome } from '../../src/ledger/command.ts';
import type { Cycle } from '../../src/ledger/cycle.ts';
import type { Moment } from '../../src/ledger/decide.ts';
import type { Batch, Folded, LoadedBatch } from '../../src/ledger/fold.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import { posting } from '../../src/ledger/posting.ts';
import type { Loaded } from '../../src/store/loaded.ts';
import { TransactionIds } from '../../src/store/transaction-ids.ts';
import type { Lock } from './disk.ts';
import { SimulatedStore, type Staged } from './simulated-store.ts';

type Outcomes = readonly (Outcome | null)[];

/** The disk gets it a moment later, if the process lives that long. */
class AcknowledgesBeforeCommit extends SimulatedStore {
  protected override async commit(staged: Staged): Promise<Outcomes | null> {
    const { time, chance } = this.options;
    time.after(chance.delay(100), () => this.apply(staged), this.owner);
    return staged.folded.outcomes;
  }
}

/** What was confirmed last is gone after a crash: a disk whose cache was not flushed. */
class LosesTheLastCommitInACrash extends SimulatedStore {
  protected override async commit(staged: Staged, lock: Lock): Promise<Outcomes | null> {
    const before = new Map([...this.disk.users].map(([name, rows]) => [name, structuredClone(rows)]));
    const outcomes = await super.commit(staged, lock);
    const { time } = this.options;
    const { owner } = this;
    time.after(
      20,
      () => {
        if (owner.isAlive) return;
        for (const { user } of staged.folded.changes) {
          const name = `${user.account}/${user.endUser}`;
          const rows = before.get(name);
          if (rows === undefined) this.disk.users.delete(name);
          else this.disk.users.set(name, rows);
        }
      },
      null,
    );
    return outcomes;
  }
}

/** Now and then a commit whose reply is lost is taken for one that failed, and made again. */
class AppliesTwiceOnALostReply extends SimulatedStore {
  protected override apply(staged: Staged): void {
    super.apply(staged);
    if (!this.options.chance.happens(0.02)) return;
    const commands = staged.batch.commands.map((command) => ({ ...command, idempotency: null }) as Command);
    this.disk.commit(this.stage(commands).folded);
  }
}

/** The answers to keys are stored by themselves, a little later. */
class KeepsAnswersApart extends SimulatedStore {
  protected override apply(staged: Staged): void {
    const { changes, answers } = staged.folded;
    this.disk.commit({ changes, answers: [] });
    this.options.witness.committed(staged.batch.commands, staged.folded.outcomes, staged);
    const { time, chance } = this.options;
    time.after(chance.delay(20), () => this.disk.commit({ changes: [], answers }), this.owner);
  }
}

/** Nobody remembers the latest instant: a clock that goes back brings back what has expired. */
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

/** Answers go to whoever is next in the batch. */
class AnswersInTheWrongOrder extends SimulatedStore {
  override async write(commands: readonly Command[]): Promise<Outcomes> {
    const outcomes = await super.write(commands);
    const reversed = outcomes.toReversed();
    // Where the server could not even write the answer, nothing would be left to catch.
    return commands.every((command, place) => canBeWritten(command, reversed[place])) ? reversed : outcomes;
  }
}

function canBeWritten({ kind }: Command, outcome: Outcomes[number] | undefined): boolean {
  const needsCycle = kind === 'start-cycle' || kind === 'stop-cycle';
  return !needsCycle || outcome === null || outcome?.refused !== null || outcome.cycle !== null;
}

/** What is left of a period comes on top of the next. */
class CarriesLeftoversOver extends SimulatedStore {
  protected override fold(batch: Batch, loaded: LoadedBatch, moment: Moment): Folded {
    const folded = super.fold(batch, loaded, moment);
    const changes = folded.changes.map((change) => {
      const leftover = change.changed.find(({ after }) => after.status === 'renewed')?.before.remaining ?? 0;
      const first = change.opened.findIndex(({ period }) => period > 0);
      if (leftover === 0 || first === -1) return change;
      const more = (cycle: Cycle, index: number) =>
        index === first ? { ...cycle, amount: cycle.amount + leftover, remaining: cycle.remaining + leftover } : cycle;
      return { ...change, opened: change.opened.map(more) };
    });
    return { ...folded, changes };
  }
}

/** A subtraction that the balance does not cover takes what has expired. */
class SpendsExpiredCredits extends SimulatedStore {
  protected override fold(batch: Batch, loaded: LoadedBatch, moment: Moment): Folded {
    const folded = super.fold(batch, loaded, moment);
    const [command] = batch.commands;
    const isRefused = folded.outcomes[0]?.refused === 'InsufficientFunds' && folded.changes.length === 0;
    if (batch.commands.length > 1 || command?.kind !== 'subtract' || !isRefused) return folded;
    const { amount, actor } = command;
    const before = this.disk.load(command, 0).find(({ end, remaining }) => end <= moment.now && remaining >= amount);
    if (before === undefined) return folded;
    const after = { ...before, remaining: before.remaining - amount };
    const kind = 'subtract' as const;
    const entry = { transactionId: moment.nextId(), kind, amount: -amount, createdAt: moment.now, actor, note: null };
    const change = {
      user: command,
      index: 0,
      opened: [],
      changed: [{ before, after }],
      postings: [posting(before, entry)],
      cycles: { before: [before], after: [after] },
    };
    const answers = folded.answers.map((answer) => ({ ...answer, outcome: ACCEPTED }));
    return { outcomes: [ACCEPTED], changes: [change], answers };
  }
}

/** Two that read the same rows both write what they made of them. */
class WritesWithoutLocks extends SimulatedStore {
  protected override async lock(names: readonly string[]): Promise<Lock> {
    return { names, owner: this.owner, granted: () => {}, isCommitting: false };
  }
}

/** It says that nothing happened when it does not know. */
class CallsTheUnknownUndone extends SimulatedStore {
  override async write(commands: readonly Command[]): Promise<Outcomes> {
    try {
      return await super.write(commands);
    } catch (error) {
      throw Object.assign(error as Error, { code: 'StoreUnavailable' });
    }
  }
}

/** Whoever asks in the middle of a write is shown a renewal that the write then comes before. */
class ShowsRenewalsTooEarly extends SimulatedStore {
  protected override async readSettled<Result extends Loaded>(
    user: EndUserKey,
    kind: 'balance' | 'transactions' | null,
    read: () => Result,
  ): Promise<Result> {
    const result = read();
    if (kind !== null) this.options.witness.read(kind, user, result.now);
    return result;
  }
}

export const BROKEN_STORES = {
  nothing: SimulatedStore,
  'acknowledges before its commit': AcknowledgesBeforeCommit,
  'loses the last commit in a crash': LosesTheLastCommitInACrash,
  'applies twice on a lost reply': AppliesTwiceOnALostReply,
  'keeps answers outside the transaction': KeepsAnswersApart,
  'lets a clock that goes back revive credits': BelievesTheWallClock,
  'answers in the wrong order': AnswersInTheWrongOrder,
  'carries leftovers over a renewal': CarriesLeftoversOver,
  'spends expired credits': SpendsExpiredCredits,
  'writes without locks': WritesWithoutLocks,
  'calls the unknown undone': CallsTheUnknownUndone,
  'shows renewals that a write under way comes before': ShowsRenewalsTooEarly,
} as const;

export type Control = keyof typeof BROKEN_STORES;

export const CONTROLS = Object.keys(BROKEN_STORES).filter((name) => name !== 'nothing') as Control[];
