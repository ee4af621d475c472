// Helpers for the tests of imports: ledgers to import into, and imports that stop as if they were killed.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApiKey } from '../../../src/store/key-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { openSqliteImport } from '../../../src/store/sqlite/tools/importing.ts';
import type { Stores } from '../../../src/store/stores.ts';
import { type ImportOptions, type ImportRow, importRows } from '../../../src/store/tools/import.ts';
import type { ImportTarget } from '../../../src/store/tools/ledger-import.ts';
import { EndUser, NOON, temporaryFile } from '../temporary-ledger.ts';
import { fileAt } from './copied-ledger.ts';

export const SHA256 = 'ab'.repeat(32);

export interface Ledger {
  readonly url: string;
  wall: number;
  open(): Promise<Stores>;
  openImport(): Promise<ImportTarget>;
}

export async function newFile(file = temporaryFile()): Promise<Ledger> {
  const ledger: Ledger = {
    url: fileAt(file),
    wall: NOON,
    open: () => openSqliteStore(file, () => ledger.wall),
    openImport: async () => openSqliteImport(file, () => ledger.wall),
  };
  return withAccount(ledger);
}

export async function newServedFile(): Promise<Ledger> {
  const ledger = await newFile();
  const { openImport } = ledger;
  return Object.assign(ledger, {
    async openImport() {
      const stores = await ledger.open();
      const stop = grantQueued(stores);
      const target = await openImport();
      const close = target.close.bind(target);
      return Object.assign(target, { close: () => close().then(stop) });
    },
  });
}

/** Grants queued batches, as a server does. The returned function stops this work and closes the ledger. */
export function grantQueued({ ledger, imports }: Stores): () => Promise<void> {
  let isStopping = false;
  const granting = (async () => {
    while (!isStopping) if (!(await imports?.grantNext())) await sleep(2);
  })();
  return async () => {
    isStopping = true;
    await granting.finally(() => ledger.close());
  };
}

export const fileOf = ({ url }: Ledger) => url.slice('file:'.length);

export async function withAccount(ledger: Ledger): Promise<Ledger> {
  const { ledger: store, keys } = await ledger.open();
  await createApiKey(keys, { accountName: 'acme', scope: 'write' });
  await store.close();
  return ledger;
}

interface Run extends Partial<Omit<ImportOptions, 'report'>> {
  /** After this number of rows, the import stops as if it were killed. */
  readonly killedAfter?: number;
}

export class Killed extends Error {}

export async function run(ledger: Ledger, rows: readonly ImportRow[], { killedAfter, ...options }: Run = {}) {
  const target = await ledger.openImport();
  try {
    const account = (await target.accountNamed('acme')) as number;
    const one = await target.start({ account, fileName: 'balances.csv', sha256: SHA256, rows: rows.length });
    return await importRows(target, one, each(rows), {
      onNotGranted: () => assert.fail('every row is granted'),
      signal: new AbortController().signal,
      ...options,
      report: ({ done }) => {
        if (killedAfter !== undefined && done >= killedAfter) throw new Killed();
      },
    });
  } finally {
    await target.close();
  }
}

export async function* each(rows: readonly ImportRow[]): AsyncGenerator<ImportRow> {
  yield* rows;
}

export function rowsOf(count: number, change: Partial<ImportRow> = {}): ImportRow[] {
  return Array.from({ length: count }, (_, index) => ({
    line: index + 2,
    endUser: new EndUser(1, index % Math.ceil(count / 2)).key.endUser,
    amount: 1 + index,
    validity: { days: 40 },
    note: null,
    ...change,
  }));
}
