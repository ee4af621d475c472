// The broken control: it works as fast as the slow server, and takes in everything that comes, so that in the end all
// wait for longer than anybody would.

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
