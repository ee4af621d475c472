// Starts several servers on the same ledger.

import { ServerProcess } from '../load/server-process.ts';

/** If a server does not start, kills the others: otherwise they would keep the test process running. */
export async function startServers(
  count: number,
  ...how: Parameters<typeof ServerProcess.start>
): Promise<ServerProcess[]> {
  const starting = await Promise.allSettled(Array.from({ length: count }, () => ServerProcess.start(...how)));
  const servers = starting.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  const failed = starting.find(({ status }) => status === 'rejected');
  if (failed?.status !== 'rejected') return servers;
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  throw failed.reason;
}
