// An import reads a file, and each row of the file grants credits to an end user. The database transaction that grants
// the credits of a batch of rows also stores the progress of the import, so that no row is imported twice.

import type { Add, Command, Outcome } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { KeyRow, RunStatement } from '../sql-key-store.ts';
import { CannotOpen } from '../store-fault.ts';

/** An import of one file into one account, finished or not. */
export interface LedgerImport {
  readonly id: number;
  readonly account: number;
  /** The name of the file, for messages. */
  readonly fileName: string;
  /** The SHA-256 of the rows. A file with the same rows but another name counts as the same import. */
  readonly sha256: string;
  readonly rows: number;
  /** The number of rows that have been processed, including refused and expired rows. */
  readonly done: number;
  readonly granted: number;
  readonly startedAt: Instant;
  readonly updatedAt: Instant;
}

export type NewImport = Pick<LedgerImport, 'account' | 'fileName' | 'sha256' | 'rows'>;

export interface ImportTarget {
  now(): Promise<Instant>;
  /** Returns the number of the account; null if no account has this name. */
  accountNamed(name: string): Promise<number | null>;
  /** The imports of an account, oldest first. */
  imports(account: number): Promise<readonly LedgerImport[]>;
  /** Starts an import. If an earlier import into the account has the same rows, returns that import unchanged. */
  start(file: NewImport): Promise<LedgerImport>;
  /**
   * Grants the credits of the next batch and advances the import, in one database transaction.
   *
   * @param commands the additions of the batch, without the expired rows
   * @param rows the number of rows in the batch, including expired rows
   * @throws StoreFault; CannotOpen if another process has advanced the import
   */
  grant(one: LedgerImport, commands: readonly Add[], rows: number): Promise<readonly Outcome[]>;
  close(): Promise<void>;
}

export interface ImportPart {
  readonly id: number;
  readonly from: number;
  readonly to: number;
  readonly at: Instant;
}

export interface ImportStep extends ImportPart {
  readonly granted: number;
}

/** Grants the credits of rows that a `scrip import` command in another process has queued. */
export interface ImportGranter {
  /**
   * @returns whether a batch was queued
   * @throws StoreFault
   */
  grantNext(): Promise<boolean>;
}

const COLUMNS =
  'import_id, account, file_name, rows_sha256, row_count, rows_done, rows_granted, started_at, updated_at';

/** Reads and writes the table of imports with SQL that runs on both stores. */
export class ImportTable {
  readonly #schema: string;
  readonly #run: RunStatement;

  constructor(schema: string, run: RunStatement) {
    this.#schema = schema;
    this.#run = run;
  }

  async accountNamed(name: string): Promise<number | null> {
    const [row] = await this.#run(`SELECT account FROM ${this.#schema}.accounts WHERE name = $1`, [name]);
    return row === undefined ? null : Number(row[0]);
  }

  async ofAccount(account: number): Promise<readonly LedgerImport[]> {
    const select = `SELECT ${COLUMNS} FROM ${this.#schema}.imports WHERE account = $1 ORDER BY import_id`;
    return (await this.#run(select, [account])).map(importOf);
  }

  /** The caller must ensure that nothing else starts an import at the same time. */
  async start(file: NewImport, now: Instant): Promise<LedgerImport> {
    const started = (await this.ofAccount(file.account)).find(({ sha256 }) => sha256 === file.sha256);
    if (started) return started;
    const [last] = await this.#run(`SELECT coalesce(max(import_id), 0) FROM ${this.#schema}.imports`, []);
    const one = { ...file, id: Number(last?.[0]) + 1, done: 0, granted: 0, startedAt: now, updatedAt: now };
    await this.#run(`INSERT INTO ${this.#schema}.imports (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $6)`, [
      ...[one.id, file.account, file.fileName, file.sha256, file.rows],
      now,
    ]);
    return one;
  }
}

/**
 * Returns an UPDATE statement that advances an import. Its parameters are the values that `stepValues` returns. If
 * another process has advanced the import, the statement changes no row.
 */
export function moveImport(schema: string): string {
  return `UPDATE ${schema}.imports SET rows_done = $3, rows_granted = rows_granted + $4, updated_at = $5
    WHERE import_id = $1 AND rows_done = $2`;
}

export function importedByAnother(): CannotOpen {
  return new CannotOpen(
    'Another process has continued this import; wait until that process has ended, then run the same command again.',
  );
}

/** For each of `commands`, returns a `settle` command, which stores the due events of the same end user. */
export function settling(commands: readonly Command[]): readonly Command[] {
  return commands.map(({ account, endUser }) => ({ kind: 'settle', account, endUser }));
}

export function stepValues({ id, from, to, granted, at }: ImportStep): number[] {
  return [id, from, to, granted, at];
}

function importOf(row: KeyRow): LedgerImport {
  const [id, account, fileName, sha256, rows, done, granted, startedAt, updatedAt] = row;
  return {
    id: Number(id),
    account: Number(account),
    fileName: fileName as string,
    sha256: sha256 as string,
    rows: Number(rows),
    done: Number(done),
    granted: Number(granted),
    startedAt: Number(startedAt),
    updatedAt: Number(updatedAt),
  };
}
