// A PostgreSQL primary with a standby, and a store on the primary. Proxies can cut the store's connections and the
// replication connection.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { TestLedger } from '../../test-ledger.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { TcpProxy } from '../tcp-proxy.ts';

const PROCESS_ONLY = { fsync: 'off' };

export const LANES = 4;

export interface Pair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  readonly ledger: TestLedger;
  readonly url: string;
  readonly service: TcpProxy;
  readonly replication: TcpProxy;
  failOver(): Promise<void>;
}

/** @param closing receives cleanup functions; call them in reverse order */
export async function startPair(closing: (() => Promise<void>)[]): Promise<Pair> {
  const primary = await PostgresServer.start(PROCESS_ONLY);
  const replication = await TcpProxy.to(primary.port);
  const direct = await primary.createDatabase();
  const standby = await PostgresServer.standbyOf(primary, replication.port, PROCESS_ONLY);
  const service = await TcpProxy.to(primary.port);
  const url = service.url(direct);
  const ledger = await TestLedger.open(async () => pluggedDatabase(url, { lanes: LANES }));
  closing.push(
    () => Promise.all([primary.remove(), standby.remove()]).then(() => {}),
    () => Promise.all([replication.close(), service.close()]).then(() => {}),
    () => ledger.close(),
  );
  const failOver = async () => {
    await primary.down('immediate');
    await standby.query('SELECT pg_promote()');
    service.target = standby.port;
    service.cutAll();
  };
  return { primary, standby, ledger, url, service, replication, failOver };
}

export async function replicateSynchronously(primary: PostgresServer): Promise<void> {
  await primary.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await primary.query('SELECT pg_reload_conf()');
  await until(primary, `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`);
}

export async function until(server: PostgresServer, sql: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await server.query(sql)).rows.length === 0) {
    assert(performance.now() < deadline, `the condition was never met: ${sql}`);
    await sleep(20);
  }
}
