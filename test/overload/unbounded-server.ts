// The control for the overload test is a server like `slow-server.ts`, except that it accepts every request, so its
// queue grows without bound.

import { createServer, type ServerResponse } from 'node:http';

const BATCH_MS = 250;
const BATCH = 512;

const waiting: ServerResponse[] = [];
setInterval(() => {
  for (const response of waiting.splice(0, BATCH)) response.end('{}');
}, BATCH_MS);
const server = createServer((request, response) => {
  request.resume();
  if (request.url === '/subtract') waiting.push(response);
  else response.end('{}');
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});
