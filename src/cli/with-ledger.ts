// Opens the ledger at DATABASE_URL for one command and closes it when the command ends.

import { Option } from 'commander';
import { type Database, DEFAULT_LEDGER, databaseOf } from '../config.ts';
import { makeLedgerFolder, openTools } from '../open-tools.ts';
import type { OperatorStores } from '../store/tools/ledger-tools.ts';

export interface CreateOption {
  readonly create?: true | undefined;
}

export function createOption(): Option {
  return new Option('--create', 'create the folder for the ledger file if needed');
}

/** Runs `work` on the ledger, which must exist. */
export async function withLedger(work: (ledger: OperatorStores) => Promise<void>): Promise<void> {
  await withTools({ create: false }, work);
}

/** Runs `work` on the ledger, and creates the ledger if it does not exist. */
export async function withNewLedger(
  options: CreateOption,
  work: (ledger: OperatorStores) => Promise<void>,
): Promise<void> {
  await prepareFolder(databaseOf(process.env), options);
  await withTools({ create: true }, work);
}

/**
 * Creates the folder of the ledger only with --create or at the default path. If Scrip created every missing folder, it
 * would create an empty ledger whenever the ledger's disk was not mounted.
 */
export async function prepareFolder(database: Database, { create }: CreateOption): Promise<void> {
  const isDefault = database.kind === 'file' && database.path === DEFAULT_LEDGER;
  if (create || isDefault) await makeLedgerFolder(database);
}

async function withTools(options: { create: boolean }, work: (ledger: OperatorStores) => Promise<void>): Promise<void> {
  const ledger = await openTools(databaseOf(process.env), options);
  try {
    await work(ledger);
  } finally {
    await ledger.tools.close();
  }
}
