// A connection to PostgreSQL that sends steps: statements that are sent together and answered together. Without steps,
// the driver would send a Sync after each statement. The server flushes its output at each Sync, so the server would
// answer five statements in five packets. A step has a single Sync. It has no Describe, because the callers know the
// columns. After an error, the connection is closed, because this process cannot know which statements the server has
// prepared. See https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY

import assert from 'node:assert/strict';
import type { PoolClient, Submittable, Connection as Wire } from 'pg';

export type Value = string | number | null;

export interface Query {
  /** The name under which the statement is prepared once per connection; empty if it is not prepared. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly Value[];
}

/** The values of a row, in PostgreSQL's text format. */
export type TextRow = readonly (string | null)[];

/**
 * Converts a `bigint` column to a number. If a number cannot represent the integer exactly, an assertion fails.
 *
 * @param column the text of the integer, or a number
 */
export function exactInteger(column: Value | undefined): number {
  const value = Number(column ?? Number.NaN);
  assert(Number.isSafeInteger(value), 'integers in the ledger are between −(2^53−1) and 2^53−1');
  return value;
}

export interface QueryResult {
  /** The name of the command, such as `COMMIT`. */
  readonly command: string;
  /** Number of affected or returned rows; 0 for commands without rows. */
  readonly rowCount: number;
  readonly rows: readonly TextRow[];
}

/** Creates a query that is not prepared on the server. */
export function sql(text: string, values: readonly Value[] = []): Query {
  return { name: '', text, values };
}

export type PreparedStatement = (values: readonly Value[]) => Query;

let preparedCount = 0;

/** Notices with an SQLSTATE code of this class are not warnings. */
const SUCCESS = '00';

/**
 * A statement that is prepared once per connection.
 *
 * @param label words joined by underscores, for the server logs
 */
export function prepared(label: string, text: string): PreparedStatement {
  preparedCount += 1;
  const name = `scrip_${label}_${preparedCount}`;
  return (values) => ({ name, text, values });
}

export interface ConnectionOptions {
  readonly isPrepared: boolean;
  /** How long to wait for PostgreSQL's answer to a step; 0 for no limit. */
  readonly timeoutMs: number;
}

export class Connection {
  readonly #client: PoolClient;
  readonly #options: ConnectionOptions;
  readonly #prepared = new Set<string>();
  /** The driver's connection object; null until the first step is submitted. */
  #wire: Wire | null = null;
  #unanswered = 0;

  constructor(client: PoolClient, options: ConnectionOptions) {
    this.#client = client;
    this.#options = options;
  }

  /**
   * Sends the statements as one step, with a single Sync at the end. Does not wait for the answers to earlier steps, so
   * that the server can start this step as soon as it has finished the previous one.
   *
   * @returns a result for each statement
   * @throws the error (rejects) of the first statement that fails
   */
  send(queries: readonly Query[], timeoutMs = this.#options.timeoutMs): Promise<readonly QueryResult[]> {
    return new Promise((resolve, reject) => {
      // If earlier steps are still unanswered, the driver submits this step only after their answers. Write the step
      // here, so that it is sent now.
      const isSent = this.#wire !== null && this.#unanswered > 0;
      if (isSent) this.#write(this.#wire as Wire, queries);
      this.#unanswered += 1;
      const submit = (wire: Wire) => {
        this.#wire = wire;
        if (!isSent) this.#write(wire, queries);
      };
      const step = stepOf(queries.length, submit, (error, results) => {
        clearTimeout(timer);
        this.#unanswered -= 1;
        if (error) reject(error);
        else resolve(results);
      });
      const timer = timeoutMs > 0 ? setTimeout(() => this.#giveUp(step, timeoutMs), timeoutMs) : undefined;
      this.#client.query(step);
    });
  }

  async rows(query: Query): Promise<readonly TextRow[]> {
    const [result] = await this.send([query]);
    return (result as QueryResult).rows;
  }

  /** Yields up to `rowsMax` rows at a time, within the caller's transaction. The query has no parameters. */
  async *cursor(name: string, text: string, rowsMax: number): AsyncGenerator<readonly TextRow[]> {
    await this.send([sql(`DECLARE ${name} CURSOR FOR ${text}`)]);
    for (;;) {
      const rows = await this.rows(sql(`FETCH ${rowsMax} FROM ${name}`));
      if (rows.length === 0) return;
      yield rows;
    }
  }

  /** Runs several statements, separated by semicolons and without parameters. */
  async script(text: string): Promise<void> {
    await this.#client.query(text);
  }

  /**
   * Sends the statements as one step. The last statement must be COMMIT.
   *
   * @returns the server's warning, in the server's language; null if the COMMIT is confirmed without a warning
   */
  async commit(queries: readonly Query[], timeoutMs?: number): Promise<string | null> {
    let warning: string | null = null;
    const listener = ({ code, message }: { code?: string | undefined; message?: string | undefined }) => {
      if (!code?.startsWith(SUCCESS)) warning = message ?? 'a warning';
    };
    this.#client.on('notice', listener);
    try {
      const results = await this.send(queries, timeoutMs);
      assert(results.at(-1)?.command === 'COMMIT', 'PostgreSQL commits a transaction in which no statement failed');
      return warning;
    } finally {
      this.#client.off('notice', listener);
    }
  }

  /**
   * Returns the connection to the pool.
   *
   * @param isSound false to close the connection instead, which rolls back any open transaction
   */
  release(isSound: boolean): void {
    this.#client.release(!isSound);
  }

  /** Fails the step. Also closes the socket, so that every other step on this connection fails. */
  #giveUp(step: Step, timeoutMs: number): void {
    step.handleError(new Error(`No answer within ${timeoutMs} ms`));
    this.#wire?.stream.destroy();
  }

  #write(wire: Wire, queries: readonly Query[]): void {
    wire.stream.cork();
    try {
      for (const { name, text, values } of queries) {
        const statement = this.#options.isPrepared ? name : '';
        if (!this.#prepared.has(statement)) wire.parse({ name: statement, text, types: [] }, true);
        if (statement !== '') this.#prepared.add(statement);
        wire.bind({ statement, values: values.map((value) => (value === null ? null : String(value))) }, true);
        wire.execute(null, true);
      }
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }
}

/** A query object whose methods the driver calls with the server's messages. */
type Step = Submittable & { handleError(error: Error): void };

function stepOf(
  length: number,
  submit: (wire: Wire) => void,
  onEnd: (error: Error | null, results: readonly QueryResult[]) => void,
): Step {
  const results = Array.from({ length }, () => ({ command: '', rowCount: 0, rows: [] as TextRow[] }));
  let answered = 0;
  let isEnded = false;
  const end = (error: Error | null) => {
    if (!isEnded) onEnd(error, results);
    isEnded = true;
  };
  const messages = {
    submit,
    handleDataRow({ fields }: { fields: TextRow }): void {
      results[answered]?.rows.push(fields);
    },
    /** `text` is, for example, `INSERT 0 40`, `SELECT 2` or `COMMIT`. */
    handleCommandComplete({ text }: { text: string }): void {
      const [command = '', ...counts] = text.split(' ');
      Object.assign(results[answered] ?? {}, { command, rowCount: Number(counts.at(-1) ?? 0) });
      answered += 1;
    },
    handleReadyForQuery(): void {
      end(answered === length ? null : new Error('Received unexpected readyForQuery message from backend.'));
    },
    handleError: end,
  };
  return messages;
}
