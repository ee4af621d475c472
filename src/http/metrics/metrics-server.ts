// Serves /metrics on its own port, so that a firewall can hide it from API clients.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Registry } from 'prom-client';

/** @throws the error from `listen`, for example if the address is in use */
export async function serveMetrics(metrics: Registry, host: string, port: number): Promise<Server> {
  const server = createServer(async (request, response) => {
    const isMetrics = request.url?.split('?', 1)[0] === '/metrics';
    const isReadMethod = request.method === 'GET' || request.method === 'HEAD';
    if (!isMetrics || !isReadMethod) {
      response.writeHead(isMetrics ? 405 : 404, isMetrics ? { allow: 'GET, HEAD' } : {}).end();
      return;
    }
    const text = await metrics.metrics();
    response.writeHead(200, { 'content-type': metrics.contentType, 'x-content-type-options': 'nosniff' }).end(text);
  });
  server.listen(port, host);
  await once(server, 'listening');
  return server;
}
