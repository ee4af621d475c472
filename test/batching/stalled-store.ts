// A store that begins each batch and waits for the test to end it, and group commit on it with every answer written
// down: what the tests of group commit share.

import assert from 'node:assert/strict';
import { GroupCommit, type QueueLimits } from '../../src/batching/group-commit.ts';
import { ACCEPTED, type Command, type Outcome } from '../../src/ledger/command.ts';
import { ONE_LANE, type Store, StoreFault } from '../../src/store/store.ts';

type Results = readonly (Outcome | null)[];

export interface Batch {
  readonly commands: readonly Command[];
  /** Says that the next batch of the lane may come. */
  readonly decide: () => void;
  /** Accepts every command when nothing else is said. */
  finish(results?: Results): void;
  fail(error: unknown): void;
}

/** A store that begins each batch and waits for the test to end it. */
export class StalledStore {
  readonly lanes = ONE_LANE;
  readonly batches: Batch[] = [];
  /** Whether it says that it writes batches together. */
  joins = false;

  isJoining(): boolean {
    return this.joins;
  }

  write(commands: readonly Command[], onDecided: () => void): Promise<Results> {
    const { promise, resolve, reject } = Promise.withResolvers<Results>();
    this.batches.push({
      commands,
      decide: onDecided,
      finish: (results = commands.map(() => ACCEPTED)) => resolve(results),
      fail: reject,
    });
    return promise;
  }

  batch(index: number): Batch {
    const batch = this.batches[index];
    assert(batch, `batch ${index} has begun`);
    return batch;
  }

  sizes(): number[] {
    return this.batches.map(({ commands }) => commands.length);
  }
}

export type Result = Outcome | StoreFault;

/** Group commit on a stalled store, with every answer written down. */
export function begin(limits?: QueueLimits) {
  const store = new StalledStore();
  const commit = new GroupCommit(store as unknown as Store, limits);
  /** Amounts and what came back, in the order of the answers. */
  const answers: [amount: number, answer: string][] = [];
  const submit = (amount: number, endUser = USER, onAnswer: () => void = () => {}) =>
    submitOf(1, amount, endUser, onAnswer);
  const submitOf = (account: number, amount: number, endUser = USER, onAnswer: () => void = () => {}) =>
    commit.submit({ ...subtraction(amount, endUser), account }, (result) => {
      answers.push([amount, nameOf(result)]);
      onAnswer();
    });
  const renew = (endUser: string) =>
    commit.submit({ kind: 'renew', account: 1, endUser }, (result) => answers.push([0, nameOf(result)]));
  return { store, commit, answers, submit, submitOf, renew };
}

export const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

export function subtraction(amount: number, endUser = USER): Command {
  return { kind: 'subtract', account: 1, endUser, actor: 'key:1', amount };
}

export function nameOf(result: Result): string {
  return result instanceof StoreFault ? result.code : (result.refused ?? 'accepted');
}

export function amountsOf({ commands }: Batch): (number | string)[] {
  return commands.map((command) => (command.kind === 'subtract' ? command.amount : command.kind));
}

export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
