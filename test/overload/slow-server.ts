// A server on a slow disk: every batch takes at least a quarter of a second. A load generator can therefore send ten
// times the server's maximum throughput without using all of the machine's CPU time.

import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../../src/config.ts';
import { startService } from '../../src/service.ts';

const BATCH_MS = 250;

const service = await startService(readConfig(process.env));
const { ledger } = service.stores;
const write = ledger.write.bind(ledger);
// Do not report when a batch is decided, so that each batch begins only after the previous batch is written.
ledger.write = async (commands) => {
  const [outcomes] = await Promise.all([write(commands, () => {}), sleep(BATCH_MS)]);
  return outcomes;
};
process.stdout.write(`${service.url}\n`);
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
