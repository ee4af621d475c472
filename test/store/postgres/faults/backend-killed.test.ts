// Kills individual PostgreSQL processes under load, as the Linux out-of-memory killer might. No acknowledged write is
// lost, and the service recovers by itself.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../http/running-service.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { PostgresServer } from '../postgres-server.ts';
import { type ScripOnPostgres, startScripOn } from '../scrip-on-postgres.ts';

const KILLS = Number(process.env.KILLS ?? 6);
const RECOVERY_MS_MAX = 30_000;
/**
 * How long the test waits, after each kill, for /readyz to report a fault. PostgreSQL may recover before the test reads
 * /readyz, so the test requires only that at least one of the faults is reported.
 */
const FAULT_SEEN_MS_MAX = 3_000;

const VICTIM = `
  SELECT pid FROM pg_stat_activity WHERE application_name = 'scrip'
  ORDER BY state = 'active' DESC, random() LIMIT 1`;

let server: PostgresServer;
let running: ScripOnPostgres;
before(async () => {
  // fsync is off to save time: writes survive a crash of PostgreSQL as long as the machine itself does not crash.
  server = await PostgresServer.start({ fsync: 'off' });
  running = await startScripOn(server);
});
after(async () => {
  await running?.scrip.stop();
  await server.remove();
});

async function readiness(): Promise<number> {
  return (await running.scrip.get('/readyz')).status;
}

test('if PostgreSQL closes all connections because one of its processes was killed, no acknowledged write is lost', {
  timeout: 120_000,
}, async (t) => {
  const history = new History();
  const { ledger } = running.scrip.service.stores;
  const load = startLoad(ledger, history);
  t.after(() => load.stop());
  let slowestMs = 0;
  let seenFaults = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await load.acknowledged(200, 10_000);
    await sleep(randomInt(100));
    const { rows } = await server.query(VICTIM);
    process.kill(rows[0].pid, 'SIGKILL');
    const wasKilled = performance.now();
    const isSeen = eventually(async () => (await readiness()) === 503, '/readyz reports the fault', FAULT_SEEN_MS_MAX);
    seenFaults += await isSeen.then(
      () => 1,
      () => 0,
    );
    await load.acknowledged(1, RECOVERY_MS_MAX);
    await eventually(async () => (await readiness()) === 200, '/readyz reports the recovery', RECOVERY_MS_MAX);
    const tookMs = performance.now() - wasKilled;
    assert(tookMs < RECOVERY_MS_MAX, `it took ${tookMs} ms`);
    slowestMs = Math.max(slowestMs, tookMs);
  }
  await load.acknowledged(100);
  await load.stop();
  assert(seenFaults > 0, '/readyz reports the faults');
  assert.deepEqual(await history.faultsOf(ledger, running.url), []);
  assert.equal(history.count('OutcomeUnknown'), 0, 'the server was back in time to determine every outcome');
  assert.equal(history.count('Internal'), 0);
  t.diagnostic(`${KILLS} kills: ${history.summary}; recovery within ${Math.round(slowestMs)} ms`);
});
