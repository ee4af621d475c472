// A store for the group-commit tests: each batch waits until the test finishes it.

import assert from 'node:assert/strict';
import { type CommitResult, GroupCommit } from '../../src/batching/group-commit.ts';
import type { Command, Outcome } from '../../src/ledger/command.ts';
import type { Lanes, LedgerStore } from '../../src/store/ledger-store.ts';

export const ONE_LANE: Lanes = { count: 1, atOnce: 1, of: () => 0 };

export const ACCEPTED: Outcome = { refused: null, transactionId: '019bc0de-0000-4000-8000-000000000002' };

type Results = readonly (Outcome | null)[];

export interface Batch {
  readonly commands: readonly Command[];
  readonly decide: () => void;
  finish(results?: Results): void;
  fail(error: unknown): void;
}

export class StalledStore {
  readonly lanes: Lanes;
  readonly batches: Batch[] = [];

  constructor(lanes = ONE_LANE) {
    this.lanes = lanes;
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

export function ledgerStoreOf(store: Partial<LedgerStore>): LedgerStore {
  return store as LedgerStore;
}

export function begin(store = new StalledStore()) {
  const commit = new GroupCommit(ledgerStoreOf(store));
  const results: [amount: number, result: string][] = [];
  const submit = (amount: number, endUser = USER, onResult: () => void = () => {}) =>
    submitOf(1, amount, endUser, onResult);
  const submitOf = (account: number, amount: number, endUser = USER, onResult: () => void = () => {}) =>
    commit.submit({ ...subtraction(amount, endUser), account }, (result) => {
      results.push([amount, nameOf(result)]);
      onResult();
    });
  const settle = (endUser: string) =>
    commit.submit({ kind: 'settle', account: 1, endUser }, (result) => results.push([0, nameOf(result)]));
  return { store, commit, results, submit, submitOf, settle };
}

export const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

export function subtraction(amount: number, endUser = USER): Command {
  return { kind: 'subtract', account: 1, endUser, actor: 'key:1', amount };
}

export function nameOf(result: CommitResult): string {
  return 'code' in result ? result.code : (result.refused ?? 'accepted');
}

export function amountsOf({ commands }: Batch): (number | string)[] {
  return commands.map((command) => (command.kind === 'subtract' ? command.amount : command.kind));
}

export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
