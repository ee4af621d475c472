// A webhook receiver in its own process: `node receiver-process.ts PORT FILE`. The receiver appends each request to
// FILE before it responds, so that FILE contains all requests that the sender counts as delivered.

import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Arrival } from './receiver.ts';

/** With a delay before each response, some kills happen between a request and its response. */
const RESPONSE_MS_MAX = Number(process.env.RESPONSE_MS_MAX ?? 0);

const [port, file = ''] = process.argv.slice(2);
const descriptor = openSync(file, 'a');
// A kill may have left an incomplete last line.
writeSync(descriptor, '\n');

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const id = String(request.headers['webhook-id']);
  const arrival: Arrival = { path: request.url as string, id, body, at: Date.now() };
  writeSync(descriptor, `${JSON.stringify(arrival)}\n`);
  const respond = () => response.writeHead(204).end();
  if (RESPONSE_MS_MAX === 0) respond();
  else setTimeout(respond, Math.random() * RESPONSE_MS_MAX);
});
// The sender closes idle connections before this timeout.
server.keepAliveTimeout = 10_000;
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
