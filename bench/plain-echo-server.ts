// An echo server on Node's own HTTP module. A request to any ledger on Node costs at least as much as a request to this
// server.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => answer(request, response, Buffer.concat(chunks)));
});

function answer(_request: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
  const { end_user_id, amount } = JSON.parse(bytes.toString()) as { end_user_id: unknown; amount: unknown };
  const isRight = typeof end_user_id === 'string' && Number.isSafeInteger(amount);
  const body = isRight ? JSON.stringify({ end_user_id, amount }) : '{"error":"InvalidField"}';
  response.writeHead(isRight ? 200 : 422, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  });
  response.end(body);
}

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
