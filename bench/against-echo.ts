// How much of a Fastify echo's throughput `/subtract` holds, with every answer on stable storage: both under the same
// load, in turn, in one run. `npm run bench -- [CONNECTIONS] [ROUNDS] [SECONDS]`

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeKey, verify } from './ledger.ts';
import { startServer, stopServers } from './servers.ts';
import { compare, fund, newEndUsers, runOf } from './subtractions.ts';

const run = runOf(process.argv.slice(2).map(Number));
const folder = mkdtempSync(join(tmpdir(), 'scrip-bench-'));
const database = { kind: 'file', path: join(folder, 'scrip.db') } as const;
const secret = await makeKey(database);
const endUsers = newEndUsers();
try {
  const settings = { DATABASE_URL: `file:${database.path}` };
  const echo = { name: 'echo', url: await startServer('echo-server.ts', [], {}), secret };
  const scrip = { name: 'Scrip', url: await startServer('../src/cli.ts', ['serve'], settings), secret };
  await fund(scrip, endUsers);
  await compare(echo, scrip, endUsers, run);
} finally {
  await stopServers();
}
await verify(database);
rmSync(folder, { recursive: true });
