// Imports grants into a ledger on PostgreSQL. Servers can use the ledger at the same time.

import assert from 'node:assert/strict';
import type { Add, Command, Outcome } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { CannotOpen, StoreFault } from '../../store-fault.ts';
import {
  type ImportStep,
  ImportTable,
  type ImportTarget,
  importedByAnother,
  type LedgerImport,
  moveImport,
  type NewImport,
  settling,
  stepValues,
} from '../../tools/ledger-import.ts';
import { SINGLE_DATABASE } from '../citus/placement.ts';
import { type Query, sql } from '../pool/connection.ts';
import { type ConnectionPool, type PostgresOptions, servingPool } from '../pool/connection-pool.ts';
import { Heartbeat } from '../pool/heartbeat.ts';
import { attempt } from '../pool/postgres-error.ts';
import { beginLocking, COMMIT } from '../pool/transactions.ts';
import { type LedgerDatabase, openLedger } from '../schema/open-ledger.ts';
import { BatchWriter } from '../writer/batch-writer.ts';

/** Number of connections for reads and for the heartbeat. */
const CONNECTIONS = 2;
/** One connection for batches, and one to look for a batch whose COMMIT was not confirmed. */
const WRITER_CONNECTIONS = 2;

/** If another process has advanced the import, no row matches, and a division by zero makes the whole batch fail. */
const MOVE = `WITH moved AS (${moveImport('scrip')} RETURNING 1) SELECT 1 / count(*)::integer FROM moved`;

/**
 * @throws CannotOpen if there is no ledger, if the ledger is an unfinished copy, or if Citus distributes the tables: on
 * Citus, a batch could need several transactions
 */
export function openPostgresImport(options: PostgresOptions): Promise<ImportTarget> {
  return openLedger(servingPool(options, CONNECTIONS), { ...options, create: false }, async (database) => {
    if (database.placement !== SINGLE_DATABASE)
      throw new CannotOpen('Scrip cannot import into a ledger on Citus; send POST /add requests instead.');
    const heartbeat = new Heartbeat(database.pool, database.clock, () => {});
    const writers = servingPool(options, WRITER_CONNECTIONS);
    await heartbeat.start();
    return new PostgresImport(database, writers, heartbeat);
  });
}

class PostgresImport implements ImportTarget {
  readonly #database: LedgerDatabase;
  readonly #writers: ConnectionPool;
  readonly #heartbeat: Heartbeat;
  readonly #writer: BatchWriter;
  readonly #table: ImportTable;

  constructor(database: LedgerDatabase, writers: ConnectionPool, heartbeat: Heartbeat) {
    this.#database = database;
    this.#writers = writers;
    this.#heartbeat = heartbeat;
    this.#writer = new BatchWriter(writers, database, heartbeat, database.placement.lanes(1));
    this.#table = new ImportTable('scrip', (text, values) => attempt(() => database.pool.rows(sql(text, values))));
  }

  now(): Promise<Instant> {
    const { clock, pool } = this.#database;
    return attempt(() => clock.peek(pool));
  }

  /** The database's time, even if the ledger has a test clock. */
  #machineTime(): Promise<Instant> {
    const { clock, pool } = this.#database;
    return attempt(() => clock.peekMachine(pool));
  }

  accountNamed(name: string): Promise<number | null> {
    return this.#table.accountNamed(name);
  }

  imports(account: number): Promise<readonly LedgerImport[]> {
    return this.#table.ofAccount(account);
  }

  async start(file: NewImport): Promise<LedgerImport> {
    const now = await this.#machineTime();
    return attempt(() =>
      this.#database.pool.use(async (connection) => {
        await connection.send(beginLocking('scrip.imports'));
        const table = new ImportTable('scrip', (text, values) => connection.rows(sql(text, values)));
        const started = await table.start(file, now);
        await connection.send([COMMIT]);
        return started;
      }),
    );
  }

  async grant(one: LedgerImport, commands: readonly Add[], rows: number): Promise<readonly Outcome[]> {
    const at = await this.#machineTime();
    const stepOf = (granted: number): ImportStep => ({ id: one.id, from: one.done, to: one.done + rows, granted, at });
    try {
      if (commands.length === 0) {
        await attempt(() => this.#database.pool.rows(move(stepOf(0))));
        return [];
      }
      await this.#settle(commands);
      const outcomes = await this.#writer.write(
        commands,
        () => {},
        (decided) => {
          assert(!decided.includes(null), 'all due events of the end users have just been stored');
          return [move(stepOf(decided.filter((outcome) => outcome?.refused === null).length))];
        },
      );
      return outcomes as readonly Outcome[];
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error;
      throw await this.#explained(one, error);
    }
  }

  /** Stores all due events of the end users in `commands`, in as many batches as needed. */
  async #settle(commands: readonly Command[]): Promise<void> {
    while ((await this.#writer.write(settling(commands), () => {})).includes(null));
  }

  async #explained(one: LedgerImport, fault: StoreFault): Promise<Error> {
    const imports = await this.imports(one.account).catch(() => []);
    const stored = imports.find(({ id }) => id === one.id);
    if (stored === undefined || stored.done === one.done) return fault;
    return importedByAnother();
  }

  async close(): Promise<void> {
    await this.#heartbeat.stop();
    await Promise.all([this.#writers.end(), this.#database.pool.end()]);
  }
}

function move(step: ImportStep): Query {
  return sql(MOVE, stepValues(step));
}
