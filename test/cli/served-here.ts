// Serves ledgers and creates API keys in the test process: this is much faster than starting a `scrip` command.

import type { TestContext } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/service.ts';
import { newKeyIn } from '../load/server-process.ts';
import type { Environment } from './scrip-command.ts';

/** Without WEBHOOK_KEY, a service on PostgreSQL would create a key file in the working directory. */
const SETTINGS: Environment = { PORT: '0', LOG_LEVEL: 'silent', WEBHOOK_KEY: '0'.repeat(64) };

export async function serveHere(
  t: TestContext,
  environment: Environment,
  options: { readonly testClock?: boolean } = {},
): Promise<Service> {
  const service = await startService({ ...readConfig({ ...SETTINGS, ...environment }), ...options });
  t.after(() => service.stop());
  return service;
}

/** Creates the ledger if it does not exist. */
export function createKeyHere(environment: Environment, accountName = 'Lovelace Ltd'): Promise<string> {
  return newKeyIn(environment, accountName);
}
