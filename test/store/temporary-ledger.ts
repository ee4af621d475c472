// Helpers for the tests of stores: temporary folders, commands, and a ledger with transactions of all kinds.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deriveEvents } from '../../src/events/derive.ts';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import type { Finding } from '../../src/ledger/audit.ts';
import { activeBalance, cyclesAt } from '../../src/ledger/balance.ts';
import type {
  Accepted,
  Command,
  EndUserKey,
  OnActive,
  Outcome,
  Refusal,
  Settle,
  WriteCommand,
} from '../../src/ledger/command.ts';
import { DAY_MS, INSTANT_MAX, VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import type { Plan } from '../../src/ledger/plan.ts';
import type { Transaction } from '../../src/ledger/posting.ts';
import { type IdRange, idsBetween, type TransactionId } from '../../src/ledger/transaction-id.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { AuditReport, LedgerTools } from '../../src/store/tools/ledger-tools.ts';

/** A Saturday and the last day of a month, so that tests fail if the ledger treats weekends or month ends wrongly. */
export const NOON = Date.UTC(2026, 0, 31, 12);

export const EVERYTHING: IdRange = idsBetween(0, INSTANT_MAX);

const folders: string[] = [];
// The folders are deleted only when the process exits, because the tests' hooks must close the stores first.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'scrip-test-')));
  folders.push(folder);
  return folder;
}

export function temporaryFile(): string {
  return join(temporaryFolder(), 'scrip.db');
}

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

  startPlan(plan: Plan, onActive: OnActive = 'refuse'): WriteCommand {
    return { kind: 'start-cycle', ...this.key, actor: this.#actor, ...plan, onActive };
  }

  stopCycle(): WriteCommand {
    return { kind: 'stop-cycle', ...this.key, actor: this.#actor };
  }

  hold(amount: number, expiresInSeconds = 900): WriteCommand {
    return { kind: 'hold', ...this.key, actor: this.#actor, amount, expiresInSeconds };
  }

  capture(holdId: string, amount: number | null = null): WriteCommand {
    return { kind: 'capture', ...this.key, actor: this.#actor, holdId, amount };
  }

  release(holdId: string): WriteCommand {
    return { kind: 'release', ...this.key, actor: this.#actor, holdId };
  }

  refund(transactionId: string, amount: number | null = null, validityDays: number | null = null): WriteCommand {
    return { kind: 'refund', ...this.key, actor: this.#actor, transactionId, amount, validityDays };
  }

  settle(): Settle {
    return { kind: 'settle', ...this.key };
  }
}

export function daysPlan(amount: number, validityDays: number, rolloverMax = 0): Plan {
  return { amount, validityDays, validityMonths: null, rolloverMax };
}

export function monthsPlan(amount: number, validityMonths: number, rolloverMax = 0): Plan {
  return { amount, validityDays: null, validityMonths, rolloverMax };
}

export function noted(command: WriteCommand, note: string | null): WriteCommand {
  return { ...command, note };
}

export function keyed(command: WriteCommand, key: string, requestId: string): WriteCommand {
  return { ...command, idempotency: { key, requestId } };
}

export const ACCEPTED: Result = { refused: null };

/** An outcome without its transaction ID, which differs in each run. */
export type Result = (Omit<Accepted, 'transactionId'> | Refusal) & Pick<Outcome, 'replayOf'>;

export function resultOf(outcome: Outcome | null): Result | null {
  if (outcome === null || outcome.refused !== null) return outcome;
  const { transactionId: _, ...result } = outcome;
  return result;
}

export function replayed<Replayed extends Result>(
  outcome: Replayed,
  replayOf: string,
): Replayed & { replayOf: string } {
  return { ...outcome, replayOf };
}

export async function balanceOf(store: Pick<LedgerStore, 'load'>, { key }: EndUser): Promise<number> {
  const { now, state } = await store.load(key);
  return activeBalance(cyclesAt(state, now), now);
}

type Listed = Pick<LedgerStore, 'transactions'>;

export async function transactionsOf(store: Listed, { key }: EndUser, limit = 1_000): Promise<Transaction[]> {
  const all: Transaction[] = [];
  for (let from: string | null = null; ; ) {
    const page = await store.transactions(key, { from, limit, within: EVERYTHING });
    all.push(...page.transactions);
    if (page.next === null) return all;
    from = page.next;
  }
}

/** Returns one string for each transaction, such as `+100 add` or `-30 subtract`, latest first. */
export async function historyOf(store: Listed, user: EndUser): Promise<string[]> {
  const transactions = await transactionsOf(store, user);
  return transactions.map(({ amount, kind }) => `${amount > 0 ? '+' : ''}${amount} ${kind}`);
}

export interface Audited extends AuditReport {
  readonly findings: readonly Finding[];
}

const FINDINGS_MAX = 1_000;
export const ENDLESS = 'the audit does not end';

export async function auditOf(tools: Pick<LedgerTools, 'audit'>): Promise<Audited> {
  const findings: Finding[] = [];
  const report = await tools.audit((finding) => {
    if (findings.push(finding) > FINDINGS_MAX) throw new Error(ENDLESS);
  });
  return { findings, ...report };
}

export function problemsOf({ findings, store }: Audited): readonly string[] {
  return [...findings.map(({ message }) => message), ...store];
}

const DAY_S = DAY_MS / 1_000;

export function idsOf(outcomes: readonly (Outcome | null)[]): (TransactionId | null)[] {
  return outcomes.map((outcome) => (outcome?.refused === null ? outcome.transactionId : null));
}

export const PEOPLE = {
  oneTime: new EndUser(1, 1),
  renewing: new EndUser(1, 2),
  replacing: new EndUser(1, 3),
  rich: new EndUser(1, 4),
  eternal: new EndUser(1, 5),
  holding: new EndUser(1, 6),
  planning: new EndUser(1, 7),
  namesake: new EndUser(2, 1),
} as const;

/** Creates a ledger file with transactions of all kinds, and brings its totals and summaries up to date. */
export async function makeHistory(file: string): Promise<void> {
  let now = NOON;
  const { oneTime, renewing, replacing, rich, eternal, holding, planning, namesake } = PEOPLE;
  const { ledger, events } = await openSqliteStore(file, () => now);
  const write = async (commands: readonly Command[]) => idsOf(await ledger.write(commands, () => {}));
  await write([oneTime.add(100, 3), renewing.startCycle(30, 7), namesake.add(7, 1_000), rich.add(AMOUNT_MAX, 40)]);
  await write([oneTime.add(50, 60), rich.subtract(AMOUNT_MAX - 1), replacing.startCycle(20, 7)]);
  await write([oneTime.subtract(120), oneTime.subtract(9_999), eternal.add(5, VALIDITY_DAYS_MAX)]);
  const held = await write([holding.add(80, 10), holding.hold(31), holding.hold(20, 30 * DAY_S), holding.hold(8)]);
  const [captured] = await write([noted(holding.capture(held[1] as string, 12), 'job 8'), holding.hold(5, 60)]);
  await write([holding.release(held[3] as string)]);
  await write([planning.startPlan(daysPlan(200, 3, 150)), planning.subtract(90)]);
  now += 5 * DAY_MS;
  await write([planning.startPlan(monthsPlan(700, 1), 'at_period_end'), planning.subtract(45)]);
  const [spent, all] = await write([holding.subtract(7), holding.hold(4)]);
  await write([holding.refund(spent as string, 3), holding.capture(all as string, 6)]);
  await write([
    noted(oneTime.add(11, 90), 'goodwill, ticket 4711'),
    oneTime.subtract(3),
    renewing.add(4, 400),
    renewing.subtract(33),
  ]);
  await write([replacing.startCycle(25, 7, 'replace'), replacing.subtract(22)]);
  now += 16 * DAY_MS;
  await write([renewing.subtract(5), renewing.stopCycle(), eternal.startCycle(9, 365), replacing.settle()]);
  await write([holding.add(9, 100), holding.refund(spent as string, 2, 20), holding.refund(captured as string, 10)]);
  await write([holding.hold(5, 9 * DAY_S)]);
  await write([planning.subtract(1), planning.startPlan(monthsPlan(900, 12, 50), 'at_period_end')]);
  await write([renewing.startCycle(60, 31), namesake.subtract(2), eternal.subtract(6)]);
  while (await ledger.updateTotals());
  while (await events.deriveNext(deriveEvents));
  await ledger.close();
}
