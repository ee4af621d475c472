// PostgreSQL crashes repeatedly under load, and each acknowledged write is stored exactly once. The environment
// variable CYCLES sets the number of crashes.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { control } from '../../../effort.ts';
import { TestLedger } from '../../test-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { pluggedDatabase } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';

const CYCLES = Number(process.env.CYCLES ?? 20);

/** fsync is off to save time: writes survive a crash of PostgreSQL as long as the machine itself does not crash. */
const PROCESS_ONLY = { fsync: 'off' };

const servers: PostgresServer[] = [];
after(() => Promise.all(servers.map((server) => server.remove())));

async function startServer(settings: Readonly<Record<string, string>>): Promise<PostgresServer> {
  const server = await PostgresServer.start(settings);
  servers.push(server);
  return server;
}

async function openLedger(server: PostgresServer): Promise<{ ledger: TestLedger; url: string }> {
  const url = await server.createDatabase();
  return { url, ledger: await TestLedger.open(async () => pluggedDatabase(url)) };
}

/** @returns the longest time from a restart of the server to the next acknowledged write, in milliseconds */
async function crashUnderLoad(
  server: PostgresServer,
  { store }: TestLedger,
  history: History,
  cycles: number,
): Promise<number> {
  const load = startLoad(store, history);
  let slowestMs = 0;
  for (let cycle = 0; cycle < cycles; cycle++) {
    await load.acknowledged(100, 10_000);
    await sleep(randomInt(100));
    await server.down('immediate');
    await server.up();
    const isBack = performance.now();
    await load.acknowledged(1);
    slowestMs = Math.max(slowestMs, performance.now() - isBack);
  }
  await load.stop();
  return slowestMs;
}

test('a crash of PostgreSQL loses no acknowledged write', async (t) => {
  const server = await startServer(PROCESS_ONLY);
  const { ledger, url } = await openLedger(server);
  const history = new History();
  const slowestMs = await crashUnderLoad(server, ledger, history, CYCLES);
  assert.deepEqual(await history.faultsOf(ledger.store, url), []);
  t.diagnostic(`${CYCLES} crashes: ${history.summary}; recovery within ${Math.round(slowestMs)} ms`);
  await ledger.close();
});

control(
  'control: the crash test detects lost writes if PostgreSQL confirms commits before its log is on stable storage',
  async (t) => {
    const late = {
      synchronous_commit: 'off',
      wal_writer_delay: '10s',
      wal_writer_flush_after: '1GB',
      wal_buffers: '64MB',
    };
    const server = await startServer(late);
    const { ledger, url } = await openLedger(server);
    // Makes the schema durable, so that the crashes lose only rows.
    await server.query('CHECKPOINT');
    const history = new History();
    // One crash might lose nothing, because PostgreSQL may have just written the log. Three crashes are enough.
    await crashUnderLoad(server, ledger, history, 3);
    const faults = await history.faultsOf(ledger.store, url);
    const lost = faults.filter((fault) => /was acknowledged but is stored 0 times/.test(fault));
    assert(lost.length > 0, `nothing is lost: ${history.summary}`);
    t.diagnostic(`${lost.length} lost of ${history.count('acknowledged')} acknowledged`);
    await ledger.close();
  },
);
