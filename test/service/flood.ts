// A load generator in a separate process: it pipelines writes on many connections as fast as the server reads them.

import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';

const [port = '', key = '', connections = '', pipelined = ''] = process.argv.slice(2);

const counts: Record<string, number> = {};

/** After this many responses, all connections are open and have requests in the queue. */
const FIRST_RESPONSES = 1_000;
let responses = 0;

/** With fewer end users, each would get thousands of cycles, and writes would be slow. */
const END_USERS = 10_000;

const pieces = Array.from({ length: Math.ceil(END_USERS / Number(pipelined)) }, () =>
  Array.from({ length: Number(pipelined) }, addition).join(''),
);
let sent = 0;

function addition(): string {
  const body = JSON.stringify({ end_user_id: randomUUID(), amount: 1 });
  return `POST /add HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function flood(): void {
  const socket = connect(Number(port), '127.0.0.1');
  const send = () => {
    while (socket.write(pieces[sent++ % pieces.length] as string));
  };
  socket.on('connect', send);
  socket.on('drain', send);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g)) {
      counts[status] = (counts[status] ?? 0) + 1;
      responses += 1;
      if (responses === FIRST_RESPONSES) process.send?.('flooding');
    }
  });
}

for (let opened = 0; opened < Number(connections); opened++) flood();
process.on('message', () => process.send?.(counts, () => process.exit()));
process.on('disconnect', () => process.exit());
