// Audits a database in one snapshot: applies all postings of each end user again, and compares the result with the
// stored rows. Only some of the end users are in memory at a time.

import { setTimeout as sleep } from 'node:timers/promises';
import { audit, type Finding } from '../../../ledger/audit.ts';
import { type EndUserKey, endUserText } from '../../../ledger/command.ts';
import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { AUDITED_COLUMNS, isSummaryRight, REBUILD_COUNTS, summaryFault } from '../../end-user-summaries.ts';
import { type AuditReport, rowsDiffer } from '../../tools/ledger-tools.ts';
import { SnapshotFold } from '../../tools/snapshot-fold.ts';
import { TotalsSum } from '../../totals.ts';
import { HOLD_AS_CYCLE, KEYS, StateRows } from '../journal/state-rows.ts';
import { type Connection, sql, type TextRow } from '../pool/connection.ts';
import { KEY_TYPES, keyOf, sameKey } from '../rows/key.ts';
import { CYCLE_COLUMNS } from '../rows/ledger-rows.ts';
import { RowArrays } from '../rows/row-arrays.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import { beginScan, ledgerRowsIn } from './ledger-scan.ts';
import { totalsFaults, type Waiting, waitingIn } from './totals.ts';

/** Twice the interval at which processes store the latest instant that they have issued. */
export const SHARED_MS = 2_000;

/** Maximum number of store faults that the audit lists. A single fault already shows that the store is damaged. */
const STORE_FAULTS_MAX = 100;

const AUDITED_TABLES = ['cycles', 'holds', 'snapshots', 'end_user_summaries'] as const;
type AuditedTable = (typeof AUDITED_TABLES)[number];

type Transaction = readonly [Posting, ...Posting[]];

interface EndUserTransactions {
  readonly user: EndUserKey;
  readonly transactions: readonly Transaction[];
}

type Report = (finding: Finding) => void;

export function auditDatabase(database: LedgerDatabase, report: Report): Promise<AuditReport> {
  return database.pool.use((connection) => new DatabaseAudit(database, connection, report).run());
}

class DatabaseAudit {
  readonly #total = { endUsers: 0, postings: 0, store: [] as string[] };
  readonly #database: LedgerDatabase;
  readonly #connection: Connection;
  readonly #report: Report;
  readonly #read = { cycles: 0, holds: 0, snapshots: 0, end_user_summaries: 0 };
  readonly #totals = new TotalsSum();
  #now: Instant = 0;
  #hasWaited = false;

  constructor(database: LedgerDatabase, connection: Connection, report: Report) {
    this.#database = database;
    this.#connection = connection;
    this.#report = report;
  }

  async run(): Promise<AuditReport> {
    await this.#connection.send(beginScan(this.#database.placement));
    await this.#auditClock();
    const waiting = await waitingIn(this.#connection, this.#database.placement);
    let transactions: Transaction[] = [];
    for await (const rows of ledgerRowsIn(this.#connection, { after: null, integer: Number })) {
      const endUsers: EndUserTransactions[] = [];
      for (const row of rows) {
        if (row.kind === 'transaction') transactions.push(row.postings);
        else {
          endUsers.push({ user: row.user, transactions });
          transactions = [];
        }
      }
      await this.#auditEndUsers(endUsers, waiting);
    }
    for (const table of AUDITED_TABLES) await this.#countRows(table);
    for (const fault of await totalsFaults(this.#connection, waiting, this.#totals)) this.#fault(fault);
    for (const fault of await countFaults(this.#connection)) this.#fault(fault);
    await this.#connection.send([sql('ROLLBACK')]);
    return this.#total;
  }

  async #auditEndUsers(endUsers: readonly EndUserTransactions[], waiting: Waiting): Promise<void> {
    const cycles = await this.#rowsOf('cycles', CYCLE_COLUMNS, endUsers);
    const holds = await this.#rowsOf('holds', HOLD_AS_CYCLE, endUsers);
    const snapshots = await this.#rowsOf('snapshots', 'transaction_id, state', endUsers);
    const summaries = await this.#rowsOf('end_user_summaries', AUDITED_COLUMNS, endUsers);
    for (const [index, { user, transactions }] of endUsers.entries()) {
      const postings = transactions.flat();
      this.#total.endUsers += 1;
      this.#total.postings += postings.length;
      const fold = new SnapshotFold(new Map((snapshots[index] ?? []) as [string, string][]));
      for (const posting of postings) this.#totals.add({ user, posting });
      for (const transaction of transactions) fold.add(transaction);
      for (const transaction of fold.end())
        this.#fault(
          `the snapshot after transaction ${transaction} does not match the postings of account ${user.account}, end user ${user.endUser}`,
        );
      const stored = this.#stateOf(user, cycles[index] ?? [], holds[index] ?? []);
      if (postings.some(({ createdAt }) => createdAt > this.#now)) await this.#waitForClock();
      const findings = [...audit({ user, ...stored, postings, find: findIn(postings) }, this.#now)];
      for (const finding of findings) this.#report(finding);
      if (findings.length > 0 || waiting.endUsers.has(endUserText(user))) continue;
      const latest = { at: postings.at(-1)?.createdAt ?? 0, state: stored };
      if (!isRowRight(summaries[index]?.[0], latest, this.#now))
        this.#fault(summaryFault(user.account, `the summary does not match the postings of end user ${user.endUser}`));
    }
  }

  /** Rounds integers above 2^53−1; the audit then reports them. */
  #stateOf({ account, endUser }: EndUserKey, cycles: readonly TextRow[], holds: readonly TextRow[]): EndUserState {
    const rows = new StateRows();
    for (const row of cycles) rows.add(row, () => {}, Number);
    try {
      for (const row of holds) rows.add(row, () => {}, Number);
    } catch {
      this.#fault(`a hold of account ${account}, end user ${endUser} cannot be read`);
    }
    return rows.state();
  }

  async #rowsOf(
    table: AuditedTable,
    columns: string,
    endUsers: readonly EndUserTransactions[],
  ): Promise<readonly TextRow[][]> {
    const keys = new RowArrays(KEY_TYPES);
    for (const { user } of endUsers) keys.add(...keyOf(user));
    const rows = await this.#connection.rows(
      sql(`SELECT ${columns}, k.place FROM ${KEYS} JOIN scrip.${table} t ON ${sameKey('t')}`, keys.literals()),
    );
    this.#read[table] += rows.length;
    const byIndex = endUsers.map((): TextRow[] => []);
    for (const row of rows) byIndex[Number(row.at(-1)) - 1]?.push(row.slice(0, -1));
    return byIndex;
  }

  async #countRows(table: AuditedTable): Promise<void> {
    const [row] = await this.#connection.rows(sql(`SELECT count(*) FROM scrip.${table}`));
    const [stored, read] = [Number(row?.[0]), this.#read[table]];
    if (stored !== read)
      this.#fault(rowsDiffer(`rows in the table ${table}`, stored, 'rows of end users with postings', read));
  }

  async #auditClock(): Promise<void> {
    const at = await this.#lookAtClock();
    if (at === null) this.#fault('the clock of the ledger is missing');
    else if (at < 0 || at > LAST_INSTANT) this.#fault('the clock of the ledger is set to an invalid time');
  }

  /** Reads the ledger's clock outside the snapshot. Returns the stored instant; null if the row is missing. */
  async #lookAtClock(): Promise<number | null> {
    const { clock, pool } = this.#database;
    const kept = '(SELECT at FROM scrip.clock)';
    const looked = `SELECT ${kept}, least(greatest(${kept}, ${clock.sql}), ${LAST_INSTANT})`;
    const [[at, now] = []] = await pool.rows(sql(looked));
    this.#now = Math.max(this.#now, Number(now));
    return at === null ? null : Number(at);
  }

  /** Waits until every process has stored the instant of its latest posting. Only the first call waits. */
  async #waitForClock(): Promise<void> {
    if (this.#hasWaited) return;
    this.#hasWaited = true;
    await sleep(SHARED_MS);
    await this.#lookAtClock();
  }

  #fault(sentence: string): void {
    if (this.#total.store.length < STORE_FAULTS_MAX) this.#total.store.push(sentence);
  }
}

/**
 * Returns a function that finds the postings of a transaction. The function builds its index on the first call, because
 * only audits of refunds need the index.
 */
function findIn(postings: readonly Posting[]): (id: TransactionId) => readonly Posting[] {
  let byId: Map<TransactionId, Posting[]> | null = null;
  return (id) => {
    byId ??= Map.groupBy(postings, ({ transactionId }) => transactionId);
    return byId.get(id) ?? [];
  };
}

/** @param latest the instant of the latest posting, and the state after that posting */
function isRowRight(
  row: TextRow | undefined,
  latest: { readonly at: Instant; readonly state: EndUserState },
  now: Instant,
): boolean {
  try {
    return isSummaryRight(row ?? [], latest, now);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return false;
  }
}

async function countFaults(connection: Connection): Promise<string[]> {
  const summed = await connection.rows(
    sql('SELECT account, count(*), count(*) FILTER (WHERE balance > 0) FROM scrip.end_user_summaries GROUP BY account'),
  );
  const counted = await connection.rows(
    sql(`SELECT account, sum(end_users), sum(with_credits) FROM scrip.end_user_counts GROUP BY account
      HAVING sum(end_users) > 0`),
  );
  const [expected, stored] = [summed, counted].map(
    (rows) => new Map(rows.map(([account, ...counts]) => [account, `${counts}`])),
  );
  return [...new Set([...(expected?.keys() ?? []), ...(stored?.keys() ?? [])])]
    .filter((account) => expected?.get(account) !== stored?.get(account))
    .map((account) =>
      summaryFault(Number(account), `the counts of end users do not match the summaries; ${REBUILD_COUNTS}`),
    );
}
