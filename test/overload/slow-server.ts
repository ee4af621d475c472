// A server on a slow disk: every batch takes a quarter of a second, so that a load generator can send ten times the
// peak of the server without using the whole machine.

import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../../src/config.ts';
import { startService } from '../../src/service.ts';

const BATCH_MS = 250;

const service = await startService(readConfig(process.env));
const { ledger } = service.stores;
const write = ledger.write.bind(ledger);
// Does not report when a batch is decided, so that no batch begins before the previous batch is written.
ledger.write = async (commands) => {
  const [outcomes] = await Promise.all([write(commands, () => {}), sleep(BATCH_MS)]);
  return outcomes;
};
process.stdout.write(`${service.url}\n`);
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
