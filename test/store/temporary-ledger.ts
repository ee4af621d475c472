// What the tests of stores share: a folder that goes away with the test, commands in few words, what a store holds for
// an end user, and a ledger in which everything has happened once.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import type { Finding } from '../../src/ledger/audit.ts';
import { activeBalance } from '../../src/ledger/balance.ts';
import type { Command, EndUserKey } from '../../src/ledger/command.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { cyclesAt } from '../../src/ledger/settle.ts';
import type { AnswerLimits } from '../../src/store/sqlite/answer-index.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { PostingLimits } from '../../src/store/sqlite/unposted.ts';
import type { Store } from '../../src/store/store.ts';

/** A Saturday at noon, and the end of a month: nothing here may depend on either. */
export const NOON = Date.UTC(2026, 0, 31, 12);

const folders: string[] = [];
// At the very end, since hooks run in the order in which they were added, and stores are closed in hooks.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder of its own, gone when the tests of this file have run. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'scrip-test-')));
  folders.push(folder);
  return folder;
}

export function temporaryFile(): string {
  return join(temporaryFolder(), 'scrip.db');
}

/** Limits at which all that can happen to an end user who waits to be posted happens within a few batches. */
export const SMALL_LIMITS: PostingLimits = { usersMax: 2, cyclesMax: 5, tailMax: 8, ofUserMax: 3 };

/** The same for answers: memory knows of two or three, and segments are put together by twos. */
export const SMALL_ANSWER_LIMITS: AnswerLimits = { recentMax: 2, fanOut: 2, filterBytesMax: 256 };

/** Opens a store that is closed after the test, unless the test does so: left open, its thread would keep the tests from ending. */
export async function openFor(test: TestContext, file: string): Promise<Store> {
  const store = await openSqliteStore(file);
  test.after(() => store.close().catch(() => {}));
  return store;
}

/** The end user number `index` of an account, and what can be asked about it. */
export class EndUser {
  readonly key: EndUserKey;
  readonly #actor: string;

  constructor(account: number, index: number, actor = `key:${account}`) {
    this.key = { account, endUser: `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}` };
    this.#actor = actor;
  }

  add(amount: number, validityDays = 31): Command {
    return { kind: 'add', ...this.key, actor: this.#actor, amount, validityDays };
  }

  subtract(amount: number): Command {
    return { kind: 'subtract', ...this.key, actor: this.#actor, amount };
  }

  startCycle(amount: number, validityDays = 31, onActive: 'refuse' | 'replace' = 'refuse'): Command {
    return { kind: 'start-cycle', ...this.key, actor: this.#actor, amount, validityDays, onActive };
  }

  stopCycle(): Command {
    return { kind: 'stop-cycle', ...this.key, actor: this.#actor };
  }

  renew(): Command {
    return { kind: 'renew', ...this.key };
  }
}

/** The same command, with why it is given. */
export function noted(command: Command, note: string | null): Command {
  return command.kind === 'renew' ? command : { ...command, note };
}

export async function balanceOf(store: Store, { key }: EndUser): Promise<number> {
  const { now, cycles } = await store.cycles(key);
  return activeBalance(cyclesAt(cycles, now), now);
}

/** All stored transactions, latest first. */
export async function transactionsOf(store: Store, { key }: EndUser, limit = 1_000): Promise<Transaction[]> {
  const all: Transaction[] = [];
  for (let from: string | null = null; ; ) {
    const page = await store.transactions(key, { from, limit });
    all.push(...page.transactions);
    if (page.next === null) return all;
    from = page.next;
  }
}

/** The same as `+100 add`, `-30 subtract`, latest first. */
export async function historyOf(store: Store, user: EndUser): Promise<string[]> {
  const transactions = await transactionsOf(store, user);
  return transactions.map(({ amount, kind }) => `${amount > 0 ? '+' : ''}${amount} ${kind}`);
}

/** An audit that finds this much in a small ledger would never end. */
const FINDINGS_MAX = 1_000;
export const ENDLESS = 'the audit does not end';

export async function auditOf(store: Store): Promise<{ findings: Finding[]; store: readonly string[] }> {
  const findings: Finding[] = [];
  const report = await store.audit((finding) => {
    if (findings.push(finding) > FINDINGS_MAX) throw new Error(ENDLESS);
  });
  return { findings, store: report.store };
}

/** Two accounts and six end users; 1 and 6 are the same UUID in different accounts. */
export const PEOPLE = {
  oneTime: new EndUser(1, 1),
  renewing: new EndUser(1, 2),
  replacing: new EndUser(1, 3),
  rich: new EndUser(1, 4),
  eternal: new EndUser(1, 5),
  namesake: new EndUser(2, 1),
} as const;

/**
 * Makes a ledger of all kinds of history: additions that ended and that did not, subtractions over one cycle and over
 * several, cycles that were started, renewed, stopped, replaced, and the largest amounts and validities.
 */
export async function makeHistory(file: string): Promise<void> {
  let now = NOON;
  const { oneTime, renewing, replacing, rich, eternal, namesake } = PEOPLE;
  const store = await openSqliteStore(file, () => now);
  await store.write([
    oneTime.add(100, 3),
    renewing.startCycle(30, 7),
    namesake.add(7, 1_000),
    rich.add(AMOUNT_MAX, 40),
  ]);
  await store.write([oneTime.add(50, 60), rich.subtract(AMOUNT_MAX - 1), replacing.startCycle(20, 7)]);
  await store.write([oneTime.subtract(120), oneTime.subtract(9_999), eternal.add(5, VALIDITY_DAYS_MAX)]);
  now += 5 * DAY_MS;
  await store.write([
    noted(oneTime.add(11, 90), 'goodwill, ticket 4711'),
    oneTime.subtract(3),
    renewing.add(4, 400),
    renewing.subtract(33),
  ]);
  await store.write([replacing.startCycle(25, 7, 'replace'), replacing.subtract(22)]);
  now += 16 * DAY_MS;
  await store.write([renewing.subtract(5), renewing.stopCycle(), eternal.startCycle(9, 365), replacing.renew()]);
  await store.write([renewing.startCycle(60, 31), namesake.subtract(2), eternal.subtract(6)]);
  await store.close();
}
