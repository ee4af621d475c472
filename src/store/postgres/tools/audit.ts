// The audit of a whole database, in one snapshot: end user after end user, all postings of each folded once more and
// compared with its cycles and snapshots. Memory holds the rows of some end users.

import { setTimeout as sleep } from 'node:timers/promises';
import { audit, type Finding } from '../../../ledger/audit.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import { type Instant, LAST_INSTANT } from '../../../ledger/instant.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { AuditReport } from '../../tools/ledger-tools.ts';
import { SnapshotFold } from '../../tools/snapshot-fold.ts';
import { TotalsSum } from '../../totals.ts';
import { type Connection, sql, type TextRow } from '../pool/connection.ts';
import { BEGIN_SNAPSHOT } from '../pool/transactions.ts';
import { KEY, KEY_TYPES, keyOf, sameKey } from '../rows/key.ts';
import { CYCLE_COLUMNS, cycleOf } from '../rows/ledger-rows.ts';
import { RowArrays, unnest } from '../rows/row-arrays.ts';
import type { LedgerDatabase } from '../schema/open-ledger.ts';
import { ledgerRowsIn, SCANNING } from './ledger-scan.ts';
import { totalsFaults } from './totals.ts';

/** Twice as long as it takes processes to share what they have seen of the clock. */
const SHARED_MS = 2_000;

/** Faults below the ledger that are listed: one is enough to know. */
const STORE_FAULTS_MAX = 100;

interface EndUserPostings {
  readonly user: EndUserKey;
  readonly postings: readonly Posting[];
}

type Report = (finding: Finding) => void;

export function auditDatabase(database: LedgerDatabase, report: Report): Promise<AuditReport> {
  return database.pool.use((connection) => new DatabaseAudit(database, connection, report).run());
}

class DatabaseAudit {
  readonly #total = { endUsers: 0, postings: 0, store: [] as string[] };
  readonly #database: LedgerDatabase;
  /** In the snapshot. */
  readonly #connection: Connection;
  readonly #report: Report;
  readonly #read = { cycles: 0, snapshots: 0 };
  readonly #totals = new TotalsSum();
  /** The latest instant that the ledger has given out. */
  #now: Instant = 0;
  #hasWaited = false;

  constructor(database: LedgerDatabase, connection: Connection, report: Report) {
    this.#database = database;
    this.#connection = connection;
    this.#report = report;
  }

  async run(): Promise<AuditReport> {
    // The snapshot is taken by the first statement that reads.
    await this.#connection.send([BEGIN_SNAPSHOT, ...SCANNING, sql('SELECT 1')]);
    await this.#auditClock();
    let postings: Posting[] = [];
    for await (const rows of ledgerRowsIn(this.#connection, { after: null, integer: Number })) {
      const endUsers: EndUserPostings[] = [];
      for (const row of rows) {
        if (row.kind === 'posting') postings.push(row.posting);
        else {
          endUsers.push({ user: row.user, postings });
          postings = [];
        }
      }
      await this.#auditEndUsers(endUsers);
    }
    for (const table of ['cycles', 'snapshots'] as const) await this.#countRows(table);
    const { placement } = this.#database;
    for (const fault of await totalsFaults(this.#connection, placement, this.#totals)) this.#fault(fault);
    await this.#connection.send([sql('ROLLBACK')]);
    return this.#total;
  }

  async #auditEndUsers(endUsers: readonly EndUserPostings[]): Promise<void> {
    const cycles = await this.#rowsOf('cycles', CYCLE_COLUMNS, endUsers);
    const snapshots = await this.#rowsOf('snapshots', 'transaction_id, state', endUsers);
    for (const [index, { user, postings }] of endUsers.entries()) {
      this.#total.endUsers += 1;
      this.#total.postings += postings.length;
      const fold = new SnapshotFold(new Map((snapshots[index] ?? []) as [string, string][]));
      for (const posting of postings) {
        this.#totals.add({ user, posting });
        fold.add(posting);
      }
      for (const transaction of fold.end())
        this.#fault(
          `the snapshot of account ${user.account}, end user ${user.endUser} behind transaction ${transaction} is not what its postings say`,
        );
      // An integer that a number does not hold is rounded: the rules say what is wrong with it.
      const stored = (cycles[index] ?? []).map((row) => cycleOf(row, Number));
      if (postings.some(({ createdAt }) => createdAt > this.#now)) await this.#waitForClock();
      for (const finding of audit({ user, cycles: stored, postings }, this.#now)) this.#report(finding);
    }
  }

  /** By the index of the end user, all of its rows in a table. */
  async #rowsOf(
    table: 'cycles' | 'snapshots',
    columns: string,
    endUsers: readonly EndUserPostings[],
  ): Promise<readonly TextRow[][]> {
    const keys = new RowArrays(KEY_TYPES);
    for (const { user } of endUsers) keys.add(...keyOf(user));
    const rows = await this.#connection.rows(
      sql(
        `SELECT ${columns}, k.place FROM ${unnest(KEY_TYPES)} WITH ORDINALITY AS k (${KEY}, place)
         JOIN scrip.${table} t ON ${sameKey('t')}`,
        keys.literals(),
      ),
    );
    this.#read[table] += rows.length;
    const byIndex = endUsers.map((): TextRow[] => []);
    for (const row of rows) byIndex[Number(row.at(-1)) - 1]?.push(row.slice(0, -1));
    return byIndex;
  }

  async #countRows(table: 'cycles' | 'snapshots'): Promise<void> {
    const [row] = await this.#connection.rows(sql(`SELECT count(*) FROM scrip.${table}`));
    const [stored, read] = [Number(row?.[0]), this.#read[table]];
    if (stored !== read) this.#fault(`${stored} ${table} are stored, and ${read} belong to an end user with postings`);
  }

  async #auditClock(): Promise<void> {
    const at = await this.#lookAtClock();
    if (at === null) this.#fault('the clock of the ledger is missing');
    else if (at < 0 || at > LAST_INSTANT) this.#fault('the clock of the ledger is at no instant');
  }

  /** Outside of the snapshot. @returns the instant that is kept */
  async #lookAtClock(): Promise<number | null> {
    const { clock, pool } = this.#database;
    const kept = '(SELECT at FROM scrip.clock)';
    const looked = `SELECT ${kept}, least(greatest(${kept}, ${clock.sql}), ${LAST_INSTANT})`;
    const [[at, now] = []] = await pool.rows(sql(looked));
    this.#now = Math.max(this.#now, Number(now));
    return at === null ? null : Number(at);
  }

  /** Another process may have written a posting before the database's clock was set back, and not have shared the instant yet. */
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
