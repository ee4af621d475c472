// A primary with its standby, a store on the primary, and between them networks that can be cut.

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
  /** Of the ledger, by way of `service`. */
  readonly url: string;
  /** Between the service and the server that is the primary. */
  readonly service: TcpProxy;
  /** Between the primary and its standby. */
  readonly replication: TcpProxy;
  /** The primary crashes and never comes back; the standby takes its place. */
  failOver(): Promise<void>;
}

/** @param closing gets what is to be done at the end, last first */
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

/** From now on COMMIT waits for the standby. */
export async function replicateSynchronously(primary: PostgresServer): Promise<void> {
  await primary.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
  await primary.query('SELECT pg_reload_conf()');
  await until(primary, `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`);
}

export async function until(server: PostgresServer, sql: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await server.query(sql)).rows.length === 0) {
    assert(performance.now() < deadline, `it never came true: ${sql}`);
    await sleep(20);
  }
}
