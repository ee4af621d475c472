// Creates PostgreSQL databases for tests, and starts Scrip on them in this process.

import type { PostgresDatabase } from '../../../src/config.ts';
import type { PostgresOptions } from '../../../src/store/postgres/pool/connection-pool.ts';
import { type Scrip, startScrip } from '../../http/running-service.ts';
import { optionsFor } from './postgres-ledger.ts';
import type { PostgresServer } from './postgres-server.ts';

export interface ScripOnPostgres {
  readonly scrip: Scrip;
  readonly url: string;
}

export async function newDatabaseOn(
  server: PostgresServer,
  change: Partial<PostgresOptions> = {},
): Promise<PostgresDatabase> {
  return databaseAt(await server.createDatabase(), { lanes: 1, ...change });
}

export function databaseAt(url: string, change: Partial<PostgresOptions> = {}): PostgresDatabase {
  return { kind: 'postgres', ...optionsFor(url, change) };
}

export async function startScripOn(server: PostgresServer): Promise<ScripOnPostgres> {
  const url = await server.createDatabase();
  return { url, scrip: await startScrip({ database: databaseAt(url) }) };
}
