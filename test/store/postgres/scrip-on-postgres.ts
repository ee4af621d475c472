// Starts Scrip in this process, on a new database.

import { type Scrip, startScrip } from '../../http/running-service.ts';
import { optionsFor } from './postgres-ledger.ts';
import type { PostgresServer } from './postgres-server.ts';

export interface ScripOnPostgres {
  readonly scrip: Scrip;
  readonly url: string;
}

export async function startScripOn(server: PostgresServer): Promise<ScripOnPostgres> {
  const url = await server.createDatabase();
  return { url, scrip: await startScrip({ database: { kind: 'postgres', ...optionsFor(url) } }) };
}
