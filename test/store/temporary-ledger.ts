// Helpers for the tests of stores: temporary folders, short forms of commands, the balance and the transactions of an
// end user, and a ledger with all kinds of history.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOTALS } from '../../src/events/totals.ts';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import type { Finding } from '../../src/ledger/audit.ts';
import { activeBalance, cyclesAt } from '../../src/ledger/balance.ts';
import type { Command, EndUserKey, Outcome, Settle, WriteCommand } from '../../src/ledger/command.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { type IdRange, idsBetween } from '../../src/ledger/transaction-id.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { AuditReport, LedgerTools } from '../../src/store/tools/ledger-tools.ts';

/** A Saturday at noon, and the end of a month: nothing may depend on either. */
export const NOON = Date.UTC(2026, 0, 31, 12);

/** The range of all ids. */
export const EVERYTHING: IdRange = idsBetween(0, INSTANT_MAX);

const folders: string[] = [];
// Folders are deleted at exit and not in a hook, because hooks run in the order in which they were added, and stores
// are closed in hooks.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new temporary folder, deleted when the process of this test file exits. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'scrip-test-')));
  folders.push(folder);
  return folder;
}

export function temporaryFile(): string {
  return join(temporaryFolder(), 'scrip.db');
}

/** An end user, named by a number or by its UUID, with methods that create its commands. */
export class EndUser {
  readonly key: EndUserKey;
  readonly #actor: string;

  constructor(account: number, name: number | string, actor = `key:${account}`) {
    const numbered = `00000000-0000-4000-8000-${name.toString(16).padStart(12, '0')}`;
    this.key = { account, endUser: typeof name === 'string' ? name : numbered };
    this.#actor = actor;
  }

  add(amount: number, validityDays = 31): WriteCommand {
    return { kind: 'add', ...this.key, actor: this.#actor, amount, validityDays };
  }

  subtract(amount: number): WriteCommand {
    return { kind: 'subtract', ...this.key, actor: this.#actor, amount };
  }

  startCycle(amount: number, validityDays = 31, onActive: 'refuse' | 'replace' = 'refuse'): WriteCommand {
    return { kind: 'start-cycle', ...this.key, actor: this.#actor, amount, validityDays, onActive };
  }

  stopCycle(): WriteCommand {
    return { kind: 'stop-cycle', ...this.key, actor: this.#actor };
  }

  settle(): Settle {
    return { kind: 'settle', ...this.key };
  }
}

/** The same command with a note. */
export function noted(command: WriteCommand, note: string | null): WriteCommand {
  return { ...command, note };
}

/** The same command with an idempotency key. */
export function keyed(command: WriteCommand, key: string, requestId: string): WriteCommand {
  return { ...command, idempotency: { key, requestId } };
}

/** The same outcome as a replay. */
export function replayed(outcome: Outcome, replayOf: string): Outcome {
  return { ...outcome, replayOf };
}

export async function balanceOf(store: Pick<LedgerStore, 'load'>, { key }: EndUser): Promise<number> {
  const { now, state } = await store.load(key);
  return activeBalance(cyclesAt(state, now), now);
}

type Listed = Pick<LedgerStore, 'transactions'>;

/** All stored transactions, latest first. */
export async function transactionsOf(store: Listed, { key }: EndUser, limit = 1_000): Promise<Transaction[]> {
  const all: Transaction[] = [];
  for (let from: string | null = null; ; ) {
    const page = await store.transactions(key, { from, limit, within: EVERYTHING });
    all.push(...page.transactions);
    if (page.next === null) return all;
    from = page.next;
  }
}

/** All stored transactions as texts like `+100 add` and `-30 subtract`, latest first. */
export async function historyOf(store: Listed, user: EndUser): Promise<string[]> {
  const transactions = await transactionsOf(store, user);
  return transactions.map(({ amount, kind }) => `${amount > 0 ? '+' : ''}${amount} ${kind}`);
}

export interface Audited extends AuditReport {
  readonly findings: readonly Finding[];
}

/** With more findings in a small ledger, the audit would probably never end. */
const FINDINGS_MAX = 1_000;
export const ENDLESS = 'the audit does not end';

export async function auditOf(tools: Pick<LedgerTools, 'audit'>): Promise<Audited> {
  const findings: Finding[] = [];
  const report = await tools.audit((finding) => {
    if (findings.push(finding) > FINDINGS_MAX) throw new Error(ENDLESS);
  });
  return { findings, ...report };
}

/** All problems that an audit found, one sentence each. */
export function problemsOf({ findings, store }: Audited): readonly string[] {
  return [...findings.map(({ message }) => message), ...store];
}

/** Six end users of two accounts. The first and the last have the same UUID in different accounts. */
export const PEOPLE = {
  oneTime: new EndUser(1, 1),
  renewing: new EndUser(1, 2),
  replacing: new EndUser(1, 3),
  rich: new EndUser(1, 4),
  eternal: new EndUser(1, 5),
  namesake: new EndUser(2, 1),
} as const;

/**
 * Makes a ledger with all kinds of history: additions that have ended and that have not, subtractions from one cycle
 * and from several, cycles that were started, renewed, stopped and replaced, and the largest amounts and validities.
 * Its totals have caught up.
 */
export async function makeHistory(file: string): Promise<void> {
  let now = NOON;
  const { oneTime, renewing, replacing, rich, eternal, namesake } = PEOPLE;
  const { ledger, summaries } = await openSqliteStore(file, () => now);
  const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
  await write([oneTime.add(100, 3), renewing.startCycle(30, 7), namesake.add(7, 1_000), rich.add(AMOUNT_MAX, 40)]);
  await write([oneTime.add(50, 60), rich.subtract(AMOUNT_MAX - 1), replacing.startCycle(20, 7)]);
  await write([oneTime.subtract(120), oneTime.subtract(9_999), eternal.add(5, VALIDITY_DAYS_MAX)]);
  now += 5 * DAY_MS;
  await write([
    noted(oneTime.add(11, 90), 'goodwill, ticket 4711'),
    oneTime.subtract(3),
    renewing.add(4, 400),
    renewing.subtract(33),
  ]);
  await write([replacing.startCycle(25, 7, 'replace'), replacing.subtract(22)]);
  now += 16 * DAY_MS;
  await write([renewing.subtract(5), renewing.stopCycle(), eternal.startCycle(9, 365), replacing.settle()]);
  await write([renewing.startCycle(60, 31), namesake.subtract(2), eternal.subtract(6)]);
  while (await ledger.feed.consume(TOTALS));
  while (await summaries.catchUp());
  await ledger.close();
}
