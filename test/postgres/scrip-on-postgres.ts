// Scrip in this process, on a database of its own.

import { type Scrip, startScrip } from '../http/running-service.ts';
import { OPTIONS } from './moved-clock.ts';
import type { PostgresServer } from './postgres-server.ts';

export async function startScripOn(server: PostgresServer): Promise<Scrip> {
  const url = await server.createDatabase();
  return startScrip({ database: { kind: 'postgres', url, ...OPTIONS, citus: false } });
}
