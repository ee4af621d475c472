// The ledger that a benchmark runs on: a key to call with beforehand, and the audit afterwards.

import { createApiKey, openBeside } from '../src/app.ts';
import type { Database } from '../src/config.ts';
import { print } from './subtractions.ts';

export async function makeKey(database: Database): Promise<string> {
  const store = await openBeside(database, { create: true });
  const secret = await createApiKey(store, { accountName: 'bench', scope: 'write' });
  await store.close();
  return secret;
}

/** A rate counts only if the ledger is whole after it. */
export async function verify(database: Database): Promise<void> {
  const store = await openBeside(database, { create: false });
  let findings = 0;
  const report = await store.audit(() => {
    findings += 1;
  });
  await store.close();
  const broken = findings + report.store.length;
  print(`verified: ${report.postings} postings of ${report.endUsers} end users, ${broken} findings`);
}
