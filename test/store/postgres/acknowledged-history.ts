// After a fault, compares the response to each write with the ledger. Each write has a unique amount, so that the test
// can count how many times the write is stored.

import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Canceled, type CommitResult, GroupCommit } from '../../../src/batching/group-commit.ts';
import type { Command } from '../../../src/ledger/command.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { StoreFault } from '../../../src/store/store-fault.ts';
import { EndUser, EVERYTHING, problemsOf, transactionsOf } from '../temporary-ledger.ts';
import { auditBeside } from './postgres-ledger.ts';

export type Answer = 'acknowledged' | 'refused' | (StoreFault | Canceled)['code'];

/** For each response to a write, how many times the ledger may contain the write. */
const TIMES: Readonly<Record<Answer, readonly number[]>> = {
  acknowledged: [1],
  refused: [0],
  Canceled: [0],
  StoreUnavailable: [0],
  OutcomeUnknown: [0, 1],
  Internal: [0],
};

const END_USERS = 64;
const WRITES_PER_GENERATION = 1_000;

const WRITERS = 32;
const PAUSE_AFTER_FAULT_MS = 10;
const READS_AT_ONCE = 16;

export class History {
  readonly #answers: (Answer | null)[] = [];
  readonly #account: number;

  constructor(account = 1) {
    this.#account = account;
  }

  count(answer: Answer): number {
    return this.#answers.filter((given) => given === answer).length;
  }

  get summary(): string {
    const counts = Object.keys(TIMES).map((answer) => `${this.count(answer as Answer)} ${answer}`);
    return counts.filter((text) => !text.startsWith('0 ')).join(', ');
  }

  async write(submit: (command: Command) => Promise<CommitResult>): Promise<Answer> {
    const serial = this.#answers.push(null) - 1;
    const user = this.#userOf(serial);
    const result = await submit(serial % 3 === 2 ? user.subtract(serial + 1) : user.add(serial + 1));
    const answer = 'code' in result ? result.code : result.refused === null ? 'acknowledged' : 'refused';
    this.#answers[serial] = answer;
    return answer;
  }

  async faultsOf(store: LedgerStore, url: string): Promise<string[]> {
    const found = await this.#effects(store);
    const faults: string[] = [];
    for (const [serial, answer] of this.#answers.entries()) {
      const times = found.get(serial) ?? 0;
      found.delete(serial);
      if (answer === null) faults.push(`write ${serial} got no response`);
      else if (!TIMES[answer].includes(times))
        faults.push(`write ${serial} was ${answer} but is stored ${times} times`);
    }
    for (const serial of found.keys()) faults.push(`write ${serial} is stored but was never sent`);
    return [...faults, ...problemsOf(await auditBeside(url))];
  }

  async #effects(store: LedgerStore): Promise<Map<number, number>> {
    const found = new Map<number, number>();
    const users = new Map(this.#answers.map((_, serial) => [this.#userOf(serial).key.endUser, this.#userOf(serial)]));
    const waiting = [...users.values()];
    const read = async () => {
      for (let user = waiting.pop(); user; user = waiting.pop()) {
        for (const { amount } of await transactionsOf(store, user)) {
          const serial = Math.abs(amount) - 1;
          found.set(serial, (found.get(serial) ?? 0) + 1);
        }
      }
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE }, read));
    return found;
  }

  #userOf(serial: number): EndUser {
    const generation = Math.floor(serial / WRITES_PER_GENERATION);
    return new EndUser(this.#account, generation * END_USERS + (serial % END_USERS));
  }
}

export interface Load {
  acknowledged(more: number, withinMs?: number): Promise<void>;
  stop(): Promise<void>;
}

export function startLoad(store: LedgerStore, history: History, commit = new GroupCommit(store)): Load {
  const submit = (command: Command) => new Promise<CommitResult>((resolve) => commit.submit(command, resolve));
  let isStopped = false;
  let acknowledged = 0;
  const write = async () => {
    while (!isStopped) {
      const answer = await history.write(submit);
      if (answer === 'acknowledged') acknowledged += 1;
      else if (answer !== 'refused') await sleep(PAUSE_AFTER_FAULT_MS);
    }
  };
  const read = async () => {
    while (!isStopped) {
      const user = new EndUser(1, randomInt(END_USERS));
      await store.transactions(user.key, { from: null, limit: 10, within: EVERYTHING }).catch(expectUnavailable);
      await store.load(user.key).catch(expectUnavailable);
      await sleep(PAUSE_AFTER_FAULT_MS);
    }
  };
  const working = Promise.all([...Array.from({ length: WRITERS }, write), read(), read()]);
  return {
    async acknowledged(more, withinMs = 5_000) {
      const goal = acknowledged + more;
      const deadline = performance.now() + withinMs;
      while (acknowledged < goal) {
        if (performance.now() > deadline) throw new Error(`${more} writes were not acknowledged within ${withinMs} ms`);
        await sleep(5);
      }
    },
    async stop() {
      isStopped = true;
      await working;
    },
  };
}

function expectUnavailable(error: unknown): void {
  if (!(error instanceof StoreFault) || error.code !== 'StoreUnavailable') throw error;
}
