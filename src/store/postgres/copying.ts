// A database as either end of a copy. Servers are refused beside it by sight, since each holds a connection, and their
// writes by the locks of the tables: what sight misses cannot write either.

import assert from 'node:assert/strict';
import type { Pool, PoolClient } from 'pg';
import type { Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle } from '../../ledger/cycle.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import {
  type AccountRow,
  type CopyDestination,
  type CopySource,
  type KeyRow,
  type LedgerHead,
  type LedgerRecord,
  RECORDS_PER_BATCH,
  type Totals,
} from '../ledger-copy.ts';
import type { PeopleRow } from '../people-rows.ts';
import { type AuditReport, CannotOpen } from '../store.ts';
import type { IdPosition } from '../transaction-ids.ts';
import { type AnswerRow, answerColumns, answerOf } from './answer-rows.ts';
import { APPLICATION_NAME, openPool, type PostgresOptions, refuseUnsafe } from './connection.ts';
import { DatabaseClock } from './database-clock.ts';
import { keyOf } from './key.ts';
import { scanLedger } from './ledger-scan.ts';
import { hasUnfinishedCopy, isCitus, migrate, refuseUnfinishedCopy, schemaState } from './migrate.ts';
import { addUpAgain } from './movements.ts';
import { enterPeople, peopleOf } from './people-table.ts';
import { explained } from './postgres-store.ts';
import { INSERTS } from './record-inserts.ts';
import { RowArrays } from './row-arrays.ts';
import { ANSWER } from './statements.ts';
import { auditDatabase } from './whole-store.ts';

/** One for the locks or the writes, one to read, and one to spare. */
const CONNECTIONS = 3;

const TABLES = 'scrip.accounts, scrip.api_keys, scrip.end_users, scrip.cycles, scrip.postings, scrip.answers';

/** A copy takes as long as it takes; only for a lock, which somebody else would have to give up, it does not wait. */
const BEGIN = `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '3s'`;

/** @throws CannotOpen when there is no ledger, or a server runs on it */
export async function openPostgresSource(options: PostgresOptions): Promise<CopySource> {
  return opened(options, async (pool, name) => {
    if ((await schemaState(pool)) === null)
      throw new CannotOpen(`There is no ledger of this version at ${name} to copy; check the address.`);
    await refuseUnfinishedCopy(pool);
    await refuseAtWork(pool, name);
    const guard = await pool.connect();
    try {
      await guard.query(BEGIN);
      await guard.query(`LOCK TABLE ${TABLES}, scrip.clock IN SHARE MODE`);
      return guard;
    } catch (error) {
      guard.release(true);
      throw error;
    }
  });
}

/** @throws CannotOpen when a server runs on it */
export async function openPostgresDestination(options: PostgresOptions): Promise<CopyDestination> {
  return opened(options, async (pool, name) => {
    await refuseUnsafe(pool, options.acceptUnsafe);
    if ((await schemaState(pool)) === null) await migrate(pool, options.citus);
    await refuseAtWork(pool, name);
    return pool.connect();
  });
}

async function opened(
  options: PostgresOptions,
  prepare: (pool: Pool, name: string) => Promise<PoolClient>,
): Promise<PostgresCopying> {
  const pool = openPool(options.url, CONNECTIONS, {
    queryTimeoutMs: 0,
    applicationName: `${APPLICATION_NAME} copy`,
  });
  try {
    const name = nameOf(options.url);
    const client = await prepare(pool, name);
    const totals = { clock: new DatabaseClock(options.now), isCitus: await isCitus(pool, options.citus) };
    return new PostgresCopying(name, pool, client, totals);
  } catch (error) {
    await pool.end();
    throw explained(error);
  }
}

/** Every server asks the database once a second whether it is there, so it always holds a connection. */
async function refuseAtWork(pool: Pool, name: string): Promise<void> {
  const { rows } = await pool.query(
    'SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1',
    [APPLICATION_NAME],
  );
  if (rows[0].count === 0) return;
  throw new CannotOpen(`${name} is in use by another Scrip process; stop every server on it first.`);
}

class PostgresCopying implements CopyDestination {
  readonly name: string;
  readonly #pool: Pool;
  /** Holds the locks of a source, so that losing it fails the copy; writes to a destination. */
  readonly #client: PoolClient;
  readonly #clock: DatabaseClock;
  readonly #isCitus: boolean;
  #isLoading = false;
  /** Where this copy left the mark. */
  #mark: EndUserKey | null = null;

  constructor(
    name: string,
    pool: Pool,
    client: PoolClient,
    { clock, isCitus }: { clock: DatabaseClock; isCitus: boolean },
  ) {
    this.name = name;
    this.#pool = pool;
    this.#client = client;
    this.#clock = clock;
    this.#isCitus = isCitus;
  }

  async head(): Promise<LedgerHead> {
    const accounts = await this.#client.query<AccountRow>(
      'SELECT account, name, created_at AS "createdAt" FROM scrip.accounts ORDER BY account',
    );
    const keys = await this.#client.query<KeyRow>(
      `SELECT key_id AS id, account, scope, secret_sha256 AS "secretSha256", hint,
         created_at AS "createdAt", revoked_at AS "revokedAt", name, last_used_at AS "lastUsedAt" FROM scrip.api_keys ORDER BY key_id`,
    );
    // What servers have given out last is kept once a second; it was never later than the database's own clock.
    const clock = await this.#client.query(`SELECT greatest(at, ${this.#clock.now}) AS at FROM scrip.clock`);
    return { accounts: accounts.rows, keys: keys.rows, clock: { at: clock.rows[0].at, sequence: 0 } };
  }

  async totals(): Promise<Totals> {
    const endUsers = await this.#client.query(
      `SELECT count(*) AS count FROM scrip.end_users e WHERE EXISTS (
         SELECT 1 FROM scrip.postings p WHERE p.bucket = e.bucket AND p.account = e.account AND p.end_user = e.end_user
       )`,
    );
    const postings = await this.#client.query('SELECT count(*) AS count FROM scrip.postings');
    return { endUsers: endUsers.rows[0].count, postings: postings.rows[0].count };
  }

  dump(after: EndUserKey | null): AsyncIterable<readonly LedgerRecord[]> {
    return scanLedger(this.#pool, after);
  }

  async *answers(): AsyncGenerator<readonly IdempotencyRecord[]> {
    const client = await this.#pool.connect();
    try {
      await client.query(
        'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0',
      );
      await client.query(
        `DECLARE answers CURSOR FOR SELECT account, end_user, ${ANSWER} FROM scrip.answers
         ORDER BY account, end_user, key COLLATE "C"`,
      );
      for (;;) {
        const { rows } = await client.query<AnswerRow>(`FETCH ${RECORDS_PER_BATCH} FROM answers`);
        if (rows.length === 0) return;
        yield rows.map(answerOf);
      }
    } finally {
      client.release(true);
    }
  }

  async loadAnswers(answers: AsyncIterable<readonly IdempotencyRecord[]>): Promise<void> {
    await this.#client.query(BEGIN);
    await this.#client.query('DELETE FROM scrip.answers');
    for await (const batch of answers) {
      const rows = new RowArrays(INSERTS.answer.types);
      for (const answer of batch) rows.add(...keyOf(answer), ...answerColumns(answer));
      await this.#client.query(INSERTS.answer.text, rows.literals());
    }
    await this.#client.query('COMMIT');
  }

  async people(): Promise<readonly PeopleRow[]> {
    return peopleOf(this.#client);
  }

  async loadPeople(people: readonly PeopleRow[]): Promise<void> {
    await this.#client.query(BEGIN);
    await enterPeople(this.#client, people);
    await this.#client.query('COMMIT');
  }

  async audit(report: (finding: Finding) => void): Promise<AuditReport> {
    return auditDatabase(this.#pool, { clock: this.#clock, isCitus: this.#isCitus }, report);
  }

  async begin(source: string, head: LedgerHead): Promise<EndUserKey | null> {
    await this.#client.query(BEGIN);
    await this.#client.query(`LOCK TABLE ${TABLES} IN EXCLUSIVE MODE`);
    if (!(await hasUnfinishedCopy(this.#client))) await this.#setMark(source, head);
    const { rows } = await this.#client.query('SELECT source, account, end_user FROM scrip.copying');
    const [mark] = rows;
    if (mark?.source !== source)
      throw new CannotOpen(
        `${this.name} holds a part of a copy of another ledger, or of this one before it changed; drop its schema scrip, and copy again.`,
      );
    await this.#client.query('COMMIT');
    this.#mark = mark.account === null ? null : { account: mark.account, endUser: mark.end_user };
    return this.#mark;
  }

  async load(records: readonly LedgerRecord[]): Promise<void> {
    if (records.length === 0) return;
    if (!this.#isLoading) await this.#client.query(BEGIN);
    this.#isLoading = true;
    for (const kind of ['cycle', 'posting', 'end-user'] as const) {
      const { text, types } = INSERTS[kind];
      const rows = new RowArrays(types);
      for (const record of records)
        if (record.kind === kind) rows.add(...keyOf(record.user), ...columnsOfRecord(record));
      if (rows.count === 0) continue;
      const { rowCount } = await this.#client.query(text, rows.literals());
      assert(rowCount === rows.count, 'every row is inserted');
    }
  }

  async commit(last: EndUserKey): Promise<void> {
    // From where this copy left it: another one that was begun meanwhile ends here.
    const { rowCount } = await this.#client.query(
      `UPDATE scrip.copying SET account = $1, end_user = $2
       WHERE account IS NOT DISTINCT FROM $3 AND end_user IS NOT DISTINCT FROM $4`,
      [last.account, last.endUser, this.#mark?.account ?? null, this.#mark?.endUser ?? null],
    );
    if (rowCount !== 1) throw new CannotOpen(`Another copy to ${this.name} is under way; let that one finish.`);
    await this.#client.query('COMMIT');
    this.#isLoading = false;
    this.#mark = last;
  }

  async moveClock({ at }: IdPosition): Promise<void> {
    await this.#client.query('UPDATE scrip.clock SET at = greatest(at, $1)', [at]);
  }

  async addUpTotals(): Promise<void> {
    await addUpAgain(this.#client, { clock: this.#clock, isCitus: this.#isCitus });
  }

  async finish(): Promise<void> {
    assert(!this.#isLoading, 'all that was loaded is committed');
    await this.#client.query('DROP TABLE scrip.copying');
  }

  /** Closing the connection rolls back what is not committed, and frees the locks. */
  async close(): Promise<void> {
    this.#client.release(true);
    await this.#pool.end();
  }

  async #setMark(source: string, { accounts, keys }: LedgerHead): Promise<void> {
    for (const table of TABLES.split(', ')) {
      const { rowCount } = await this.#client.query(`SELECT 1 FROM ${table} LIMIT 1`);
      if (rowCount !== 0)
        throw new CannotOpen(
          `${this.name} holds a ledger already; copy to a database that has none, or drop its schema scrip.`,
        );
    }
    await this.#client.query(
      `CREATE TABLE scrip.copying (only_row boolean PRIMARY KEY CHECK (only_row), source text NOT NULL, account integer, end_user uuid)`,
    );
    await this.#client.query('INSERT INTO scrip.copying VALUES (true, $1)', [source]);
    for (const { account, name, createdAt } of accounts)
      await this.#client.query('INSERT INTO scrip.accounts (account, name, created_at) VALUES ($1, $2, $3)', [
        account,
        name,
        createdAt,
      ]);
    for (const { id, account, scope, secretSha256, hint, createdAt, revokedAt, name, lastUsedAt } of keys)
      await this.#client.query(
        `INSERT INTO scrip.api_keys (key_id, account, scope, secret_sha256, hint, created_at, revoked_at, name, last_used_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [id, account, scope, secretSha256, hint, createdAt, revokedAt, name, lastUsedAt],
      );
  }
}

function columnsOfRecord(record: LedgerRecord): readonly (string | number | null)[] {
  if (record.kind === 'end-user') return [record.chain];
  if (record.kind === 'posting') {
    const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = record.posting;
    return [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note];
  }
  assertCycle(record.cycle);
  const { id, period, type, status, amount, remaining, start, end, validityDays } = record.cycle;
  return [id, period, type, status, amount, remaining, start, end, validityDays];
}

/** Without the user and the password. */
function nameOf(url: string): string {
  const { host, pathname } = URL.canParse(url) ? new URL(url) : { host: '', pathname: '' };
  return `postgres://${host}${pathname}`;
}
