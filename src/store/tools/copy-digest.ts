// Computes a digest of the data that `scrip copy` copies, without the `last_used_at` column of the API keys. If two
// ledgers have the same digest, their copied data is identical. Balances are not included, because they are computed
// from the postings.

import { createHash, hash } from 'node:crypto';
import { type ChainHash, emptyHashChain, extendHashChain } from '../../ledger/hash-chain.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { storedOutcome } from '../stored-record.ts';
import { COPIED_TABLES, type CopiedTable, type CopySource, type TableRow } from './ledger-copy.ts';
import type { LedgerRow } from './ledger-row.ts';

export interface CopyDigest {
  readonly sha256: string;
  readonly accounts: number;
  readonly keys: number;
  /** The number of console users. */
  readonly people: number;
  readonly endUsers: number;
  readonly postings: number;
  /** The greatest transaction ID; null if there are no transactions. */
  readonly latest: TransactionId | null;
}

export async function digestOf(source: CopySource, progress: (postings: number) => void): Promise<CopyDigest> {
  const digest = new RowDigest();
  const tableRows = await source.tableRows();
  for (const line of linesOf(tableRows)) digest.line(line);
  for await (const rows of source.rows(null)) {
    const before = digest.counts.postings;
    for (const row of rows) digest.add(row);
    progress(digest.counts.postings - before);
  }
  for await (const records of source.idempotencyRecords())
    for (const { account, endUser, key, request, requestId, outcome, recordedAt } of records)
      digest.line(JSON.stringify([account, endUser, key, request, requestId, storedOutcome(outcome), recordedAt]));
  const count = (counted: CopiedTable) => tableRows.filter(({ table }) => table === counted).length;
  return {
    ...digest.counts,
    accounts: count('accounts'),
    keys: count('api_keys'),
    people: count('console_users'),
    latest: digest.latest,
    sha256: digest.end(),
  };
}

/** Returns the SHA-256 of only the accounts and the API keys, in hexadecimal. */
export function accountsDigest(tableRows: readonly TableRow[]): string {
  const rows = tableRows.filter(({ table }) => table === 'accounts' || table === 'api_keys');
  return hash('sha256', linesOf(rows).join('\n'), 'hex');
}

/** Omits `last_used_at`, because it changes even if nothing else in the ledger changes. */
function linesOf(tableRows: readonly TableRow[]): string[] {
  const lines = tableRows.map(({ table, values }) => {
    const columns = COPIED_TABLES[table].split(', ');
    const kept = values.filter((_, index) => columns[index] !== 'last_used_at');
    return JSON.stringify([table, ...kept]);
  });
  return lines.sort();
}

class RowDigest {
  readonly counts = { endUsers: 0, postings: 0 };
  latest: TransactionId | null = null;
  readonly #hash = createHash('sha256');
  #chain: ChainHash | null = null;

  add(row: LedgerRow): void {
    this.#chain ??= emptyHashChain(row.user);
    if (row.kind === 'transaction') {
      const { transactionId } = row.postings[0];
      this.#chain = extendHashChain(this.#chain, row.postings);
      this.counts.postings += row.postings.length;
      if (this.latest === null || transactionId > this.latest) this.latest = transactionId;
      return;
    }
    this.line(this.#chain);
    this.counts.endUsers += 1;
    this.#chain = null;
  }

  line(text: string): void {
    this.#hash.update(`${text}\n`);
  }

  end(): string {
    return this.#hash.digest('hex');
  }
}
