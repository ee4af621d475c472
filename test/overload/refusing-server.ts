// A server that refuses every request immediately. A run against this server shows how many requests the load generator
// can send.

import { createServer } from 'node:http';

const BODY = '{"error":"Overloaded"}';
const HEADERS = ['content-type', 'application/problem+json', 'content-length', String(BODY.length), 'retry-after', '1'];

const server = createServer((request, response) => {
  request.resume();
  response.writeHead(503, HEADERS).end(BODY);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});
