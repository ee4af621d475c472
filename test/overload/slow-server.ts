// A server like any other, in its own process, on a disk that is slow: every batch takes a quarter of a second, so that a
// load generator can offer it ten times what it can do without needing all of the machine for itself.

import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const BATCH_MS = 250;

const service = await startService(readConfig(process.env));
const write = service.store.write.bind(service.store);
service.store.write = async (commands) => {
  const [outcomes] = await Promise.all([write(commands), sleep(BATCH_MS)]);
  return outcomes;
};
process.stdout.write(`${service.url}\n`);
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
