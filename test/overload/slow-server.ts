// A server that simulates a slow disk: each batch takes at least 250 ms. The throughput is so low that CPU time is left
// even when a load generator sends ten times as many requests as the server can process.

import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../../src/config.ts';
import { startService } from '../../src/service.ts';

const BATCH_MS = 250;

const service = await startService(readConfig(process.env));
const { ledger } = service.stores;
const write = ledger.write.bind(ledger);
// This `write` never calls `onDecided`, so that each batch begins only after the previous batch is written.
ledger.write = async (commands) => {
  const [outcomes] = await Promise.all([write(commands, () => {}), sleep(BATCH_MS)]);
  return outcomes;
};
process.stdout.write(`${service.url}\n`);
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
