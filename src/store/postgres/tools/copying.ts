// Copies a ledger from or to a PostgreSQL database. Scrip refuses to copy while a running server is connected to the
// database. If the check misses a server that uses the source, table locks keep that server from writing.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from '../../../ledger/audit.ts';
import type { EndUserKey } from '../../../ledger/command.ts';
import type { IdempotencyRecord } from '../../../ledger/idempotency.ts';
import { CannotOpen } from '../../store-fault.ts';
import {
  COPIED_TABLE_NAMES,
  COPIED_TABLES,
  type CopiedRow,
  type CopyDestination,
  type CopySource,
  type RowCounts,
  type TableRow,
} from '../../tools/ledger-copy.ts';
import { type LedgerRow, ROWS_PER_BATCH } from '../../tools/ledger-row.ts';
import type { AuditReport } from '../../tools/ledger-tools.ts';
import type { IdPosition } from '../../transaction-ids.ts';
import { RECORD_COLUMNS, recordOf } from '../idempotency/record-table.ts';
import { type Connection, exactInteger, type Query, sql, type TextRow } from '../pool/connection.ts';
import { APPLICATION_NAME, type PostgresOptions, toolsPool } from '../pool/connection-pool.ts';
import { BEGIN, BEGIN_SNAPSHOT, COMMIT, setLocal, UNLIMITED } from '../pool/transactions.ts';
import { sameKey } from '../rows/key.ts';
import { hasUnfinishedCopy, type LedgerDatabase, type OpeningOptions, openLedger } from '../schema/open-ledger.ts';
import { auditDatabase } from './audit.ts';
import { CopyWriter } from './copy-writer.ts';
import { ledgerRowsOf, SCANNING } from './ledger-scan.ts';
import { rebuildTotals } from './totals.ts';

/**
 * One connection to lock a source or write to a destination, two connections to read rows or rebuild totals, and a
 * spare one.
 */
const CONNECTIONS = 4;

/** How many times a copy checks for connections of running servers, and the pause between two checks. */
const LOOKS = 10;
const BETWEEN_LOOKS_MS = 100;

const TABLE_NAMES = ['accounts', 'api_keys', 'end_users', 'cycles', 'holds', 'postings', 'idempotency_records'];
const TABLES = TABLE_NAMES.map((table) => `scrip.${table}`);

/** Begins a transaction whose only timeout is `lock_timeout`. */
function begin({ placement }: LedgerDatabase): readonly Query[] {
  return [BEGIN, ...UNLIMITED, ...setLocal({ lock_timeout: '3s' }), ...placement.throughout];
}

/** @throws CannotOpen if there is no ledger, if the ledger is an unfinished copy, or if a server is using the ledger */
export function openPostgresSource(options: PostgresOptions): Promise<CopySource> {
  return opened({ ...options, acceptUnsafe: true, create: false }, async (connection, database) => {
    // On Citus, `clock` exists only on the coordinator, but the other tables also exist on the workers. `clock`
    // therefore needs a separate LOCK TABLE statement.
    const locks = ['scrip.clock', TABLES.join(', ')].map((tables) => sql(`LOCK TABLE ${tables} IN SHARE MODE`));
    await connection.send([...begin(database), ...locks]);
  });
}

/** @throws CannotOpen if a server is using the database */
export function openPostgresDestination(options: PostgresOptions): Promise<CopyDestination> {
  return opened({ ...options, create: true, mayBeUnfinished: true }, async () => {});
}

function opened(
  options: OpeningOptions,
  prepare: (connection: Connection, database: LedgerDatabase) => Promise<void>,
): Promise<PostgresCopying> {
  const pool = toolsPool(options, CONNECTIONS, `${APPLICATION_NAME} copy`);
  return openLedger(pool, options, async (database) => {
    const name = nameOf(options.url);
    const connection = await pool.connect();
    try {
      await refuseAtWork(connection, name);
      await prepare(connection, database);
    } catch (error) {
      connection.release(false);
      throw error;
    }
    return new PostgresCopying(name, database, connection);
  });
}

/**
 * A running server always has a connection, because it checks the database once a second. PostgreSQL still lists a
 * connection for a moment after the connection is closed. With only one check, a copy that starts right after a server
 * has stopped would be refused.
 */
async function refuseAtWork(connection: Connection, name: string): Promise<void> {
  const atWork = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1 LIMIT 1';
  for (let looks = 0; looks < LOOKS; looks++) {
    if (looks > 0) await sleep(BETWEEN_LOOKS_MS);
    const rows = await connection.rows(sql(atWork, [APPLICATION_NAME]));
    if (rows.length === 0) return;
  }
  throw new CannotOpen(`${name} is in use by another Scrip process; first stop every server that uses it.`);
}

class PostgresCopying implements CopyDestination {
  readonly name: string;
  readonly hasTestClock: boolean;
  readonly #database: LedgerDatabase;
  /** Holds the locks on a source, or writes the rows of a destination. If this connection is lost, the copy fails. */
  readonly #connection: Connection;
  readonly #writer = new CopyWriter();
  #isLoading = false;
  /** The last end user whose rows are committed; also stored in the `copying` table. */
  #mark: EndUserKey | null = null;

  constructor(name: string, database: LedgerDatabase, connection: Connection) {
    this.name = name;
    this.hasTestClock = database.clock.isTest;
    this.#database = database;
    this.#connection = connection;
  }

  async clock(): Promise<IdPosition> {
    // Servers store their latest instant only once a second, so the stored instant can be earlier than the latest
    // posting.
    const [clock] = await this.#rows(`SELECT greatest(at, ${this.#database.clock.sql}) FROM scrip.clock`);
    return { at: exactInteger(clock?.[0]), sequence: 0 };
  }

  async counts(): Promise<RowCounts> {
    const itsPosting = `SELECT 1 FROM scrip.postings p WHERE ${sameKey('p')}`;
    const endUsers = await this.#rows(`SELECT count(*) FROM scrip.end_users k WHERE EXISTS (${itsPosting})`);
    const postings = await this.#rows('SELECT count(*) FROM scrip.postings');
    return { endUsers: Number(endUsers[0]?.[0]), postings: Number(postings[0]?.[0]) };
  }

  rows(after: EndUserKey | null): AsyncIterable<readonly LedgerRow[]> {
    const { pool, placement } = this.#database;
    // Without `stayAll`: the locks on the source already prevent moves of shards, and a second lock could wait forever,
    // behind a move that waits for these locks.
    return ledgerRowsOf(pool, [...placement.beginSnapshot, ...SCANNING], { after });
  }

  async *idempotencyRecords(): AsyncGenerator<readonly IdempotencyRecord[]> {
    const connection = await this.#database.pool.connect();
    try {
      await connection.send([BEGIN_SNAPSHOT, ...UNLIMITED]);
      const records = `SELECT account, end_user, ${RECORD_COLUMNS} FROM scrip.idempotency_records
        ORDER BY account, end_user, key COLLATE "C"`;
      for await (const rows of connection.cursor('records', records, ROWS_PER_BATCH)) yield rows.map(recordOf);
    } finally {
      connection.release(false);
    }
  }

  async loadIdempotencyRecords(records: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void> {
    await this.#connection.send([...begin(this.#database), sql('DELETE FROM scrip.idempotency_records')]);
    for await (const batch of records) {
      for (const record of batch) this.#writer.addRecord(record);
      await this.#writer.flush(this.#connection);
    }
    await this.#connection.send([COMMIT]);
  }

  async tableRows(): Promise<readonly TableRow[]> {
    const found: TableRow[] = [];
    for (const table of COPIED_TABLE_NAMES) {
      // JSON preserves the difference between numbers and strings.
      const rows = await this.#rows(`SELECT json_build_array(${COPIED_TABLES[table]}) FROM scrip.${table}`);
      for (const [values] of rows) found.push({ table, values: JSON.parse(values as string) });
    }
    return found;
  }

  async loadTables(rows: readonly TableRow[]): Promise<void> {
    const deletions = COPIED_TABLE_NAMES.toReversed().map((table) => sql(`DELETE FROM scrip.${table}`));
    const insertions = rows.map(({ table, values }) => {
      const parameters = values.map((_, index) => `$${index + 1}`).join(', ');
      return sql(`INSERT INTO scrip.${table} (${COPIED_TABLES[table]}) VALUES (${parameters})`, values);
    });
    await this.#connection.send([...begin(this.#database), ...deletions, ...insertions, COMMIT]);
  }

  audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditDatabase(this.#database, report);
  }

  async begin(source: string): Promise<EndUserKey | null> {
    await this.#connection.send([...begin(this.#database), sql(`LOCK TABLE ${TABLES.join(', ')} IN EXCLUSIVE MODE`)]);
    if (!(await hasUnfinishedCopy(this.#connection))) await this.#setMark(source);
    const [mark] = await this.#rows('SELECT source, account, end_user FROM scrip.copying');
    if (mark?.[0] !== source)
      throw new CannotOpen(
        `${this.name} contains an unfinished copy of another ledger, or of an earlier state of this source; drop the \`scrip\` schema of this database, and copy again.`,
      );
    await this.#connection.send([COMMIT]);
    const [, account, endUser] = mark;
    this.#mark = account === null ? null : { account: Number(account), endUser: endUser as string };
    return this.#mark;
  }

  async load(rows: readonly CopiedRow[]): Promise<void> {
    if (rows.length === 0) return;
    if (!this.#isLoading) await this.#connection.send(begin(this.#database));
    this.#isLoading = true;
    for (const row of rows) {
      if (row.kind === 'transaction') this.#writer.add(row.user, row.postings);
      else this.#writer.end(row.user, row.events);
    }
    await this.#writer.flush(this.#connection);
  }

  async commit(last: EndUserKey): Promise<void> {
    // If another copy has updated the `copying` table, this statement changes no row.
    const move = sql(
      `UPDATE scrip.copying SET account = $1, end_user = $2
       WHERE account IS NOT DISTINCT FROM $3 AND end_user IS NOT DISTINCT FROM $4`,
      [last.account, last.endUser, this.#mark?.account ?? null, this.#mark?.endUser ?? null],
    );
    const [moved] = await this.#connection.send([move]);
    if (moved?.rowCount !== 1)
      throw new CannotOpen(`Another copy to ${this.name} is running; wait until that copy has finished.`);
    await this.#connection.send([COMMIT]);
    this.#isLoading = false;
    this.#mark = last;
  }

  async moveClock({ at }: IdPosition): Promise<void> {
    await this.#connection.send([sql('UPDATE scrip.clock SET at = greatest(at, $1)', [at])]);
  }

  rebuildTotals(): Promise<void> {
    return rebuildTotals(this.#database);
  }

  async finish(): Promise<void> {
    assert(!this.#isLoading, 'all loaded rows are committed');
    await this.#connection.send([sql('DROP TABLE scrip.copying')]);
  }

  /** Closing the connection rolls back an open transaction and releases the locks. */
  async close(): Promise<void> {
    this.#connection.release(false);
    await this.#database.pool.end();
  }

  #rows(text: string): Promise<readonly TextRow[]> {
    return this.#connection.rows(sql(text));
  }

  async #setMark(source: string): Promise<void> {
    for (const table of TABLES) {
      if ((await this.#rows(`SELECT 1 FROM ${table} LIMIT 1`)).length > 0)
        throw new CannotOpen(
          `There is already a ledger at ${this.name}; use another database, or drop the \`scrip\` schema of this database.`,
        );
    }
    await this.#connection.send([
      sql(`CREATE TABLE scrip.copying (
        only_row boolean PRIMARY KEY CHECK (only_row), source text NOT NULL, account integer, end_user uuid
      )`),
      sql('INSERT INTO scrip.copying VALUES (true, $1)', [source]),
    ]);
  }
}

/** The URL without the user and the password. */
function nameOf(url: string): string {
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: '', pathname: '' };
  return `postgres://${host}${pathname}`;
}
