// Statements that travel together and are answered together. The driver ends each statement with a Sync of its own, at
// which the server sends off what it has: five statements were five packets, each of which woke this process. Here one
// Sync ends them all, and no statement is described, since whoever asks knows its columns. After an error the server
// skips what is left: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY

import assert from 'node:assert/strict';
import type { Writable } from 'node:stream';
import pg, { type PoolClient, type QueryConfig } from 'pg';

/** The columns of a row as PostgreSQL writes them out. */
export type TextRow = readonly (string | null)[];

export interface StatementResult {
  /** What was done, such as `COMMIT`. */
  command: string;
  /** How many rows it concerned; 0 where that means nothing. */
  rowCount: number;
  readonly rows: TextRow[];
}

/** The driver's own connection, as far as it is used here. */
interface Wire {
  readonly stream: Writable;
  readonly parsedStatements: Record<string, string>;
  parse(statement: { text: string; name: string; types: undefined }): void;
  bind(portal: {
    portal: string;
    statement: string;
    values: unknown[];
    valueMapper: (value: unknown) => unknown;
  }): void;
  execute(portal: { portal: string; rows: number }): void;
  sync(): void;
}

/**
 * Sends the statements in one piece; an error of any of them rejects. A connection after an error is not to be used again: what
 * it has prepared is then not known.
 *
 * @param timeoutMs the driver's own when absent
 * @returns a result for each
 */
export function sendStep(
  client: PoolClient,
  statements: readonly QueryConfig[],
  timeoutMs?: number,
): Promise<readonly StatementResult[]> {
  return new Promise((resolve, reject) => {
    const step = new Step(statements, (error, results) => (error ? reject(error) : resolve(results)));
    if (timeoutMs !== undefined) Object.assign(step, { query_timeout: timeoutMs });
    client.query(step as unknown as pg.Query);
  });
}

type Callback = (error: Error | null, results: readonly StatementResult[]) => void;

/** Overrides whatever of a query knows that it is one statement. */
class Step extends pg.Query {
  /** The driver puts its own in front, which also stops its timer. */
  callback: Callback;
  readonly #statements: readonly QueryConfig[];
  readonly #results: StatementResult[];
  #answered = 0;

  constructor(statements: readonly QueryConfig[], callback: Callback) {
    super({ text: '' });
    this.#statements = statements;
    this.#results = statements.map(() => ({ command: '', rowCount: 0, rows: [] }));
    this.callback = callback;
  }

  override submit = (connection: unknown) => {
    const wire = connection as Wire;
    wire.stream.cork();
    try {
      for (const statement of this.#statements) send(wire, statement);
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  };

  handleDataRow({ fields }: { fields: TextRow }): void {
    (this.#results[this.#answered] as StatementResult).rows.push(fields);
  }

  handleCommandComplete({ text }: { text: string }): void {
    const result = this.#results[this.#answered] as StatementResult;
    result.command = text.slice(0, /(?: \d+)*$/.exec(text)?.index);
    result.rowCount = Number(/\d+$/.exec(text)?.[0] ?? 0);
    this.#answered += 1;
  }

  handleReadyForQuery(): void {
    assert(this.#answered === this.#statements.length, 'without an error all statements are answered');
    this.callback(null, this.#results);
  }

  handleError(error: Error): void {
    this.callback(error, []);
  }
}

function send(wire: Wire, { name = '', text, values = [] }: QueryConfig): void {
  if (name === '' || wire.parsedStatements[name] === undefined) {
    wire.parse({ text, name, types: undefined });
    // An error on the way to it ends the connection, so that what is sent counts as prepared.
    if (name !== '') wire.parsedStatements[name] = text;
  }
  assert(name === '' || wire.parsedStatements[name] === text, 'a name stands for one text');
  wire.bind({ portal: '', statement: name, values, valueMapper: written });
  wire.execute({ portal: '', rows: 0 });
}

function written(value: unknown): string | null {
  return value === null ? null : String(value);
}
