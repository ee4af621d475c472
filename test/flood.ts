// A client without manners, a process of its own: it sends writes on many connections, many at once on each, as fast as
// they are taken, and reads the answers only to count them. It runs until it is told to stop.

import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';

const [port = '', key = '', connections = '', pipelined = ''] = process.argv.slice(2);

/** Answers by their status. */
const counts: Record<string, number> = {};

/** For so many end users: of one who is given something thousands of times, each time costs more. */
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
    for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g))
      counts[status] = (counts[status] ?? 0) + 1;
  });
}

for (let opened = 0; opened < Number(connections); opened++) flood();
process.send?.('flooding');
process.on('message', () => process.send?.(counts, () => process.exit()));
process.on('disconnect', () => process.exit());
