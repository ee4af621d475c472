// Opens the ledger of DATABASE_URL for the time of one command.

import { databaseOf } from '../config.ts';
import { openTools } from '../open-tools.ts';
import type { OperatorStores } from '../store/tools/ledger-tools.ts';

/** @param options.create whether a missing ledger is created or reported as an error */
export async function withLedger(
  options: { create: boolean },
  work: (ledger: OperatorStores) => Promise<void>,
): Promise<void> {
  const ledger = await openTools(databaseOf(process.env), options);
  try {
    await work(ledger);
  } finally {
    await ledger.tools.close();
  }
}
