// The metrics on a port of their own, for whoever keeps them from those who may call the service. It answers nothing else.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Registry } from 'prom-client';

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

/** @throws what `listen` throws when the address is taken */
export async function serveMetrics(metrics: Registry, { host, port }: MetricsAddress): Promise<Server> {
  const server = createServer(async (request, response) => {
    const isThere = request.url?.split('?', 1)[0] === '/metrics';
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isThere || !isRead) {
      response.writeHead(isThere ? 405 : 404, isThere ? { allow: 'GET, HEAD' } : {}).end();
      return;
    }
    const text = await metrics.metrics();
    response.writeHead(200, { 'content-type': metrics.contentType, 'x-content-type-options': 'nosniff' }).end(text);
  });
  server.listen(port, host);
  await once(server, 'listening');
  return server;
}
