// A load client in a worker thread, so that its allocations are not counted as the server's.

import { once } from 'node:events';
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { bytesOf, RequestSource, type Workload } from '../../bench/workload.ts';
import { AnswerReader } from '../load/answer-reader.ts';
import { Random } from '../load/random.ts';

export interface ClientData {
  readonly port: number;
  readonly secret: string;
  readonly workload: Workload;
}

const { port, secret, workload } = workerData as ClientData;
const random = new Random(11);
const source = new RequestSource(workload, () => random.next());
const socket = connect(port, '127.0.0.1').setNoDelay();
let [left, answered] = [0, 0];
const reader = new AnswerReader(({ status }) => {
  if (status === 200) answered += 1;
  next();
});
socket.on('data', (chunk: Buffer) => reader.push(chunk));

function next(): void {
  if (left === 0) {
    parentPort?.postMessage(answered);
    return;
  }
  left -= 1;
  socket.write(bytesOf(source.next(), secret), 'latin1');
}

await once(socket, 'connect');
// A message is the number of requests to send; 0 ends the client. The reply is the number of responses with status 200.
parentPort?.on('message', (requests: number) => {
  [left, answered] = [requests, 0];
  if (requests > 0) return next();
  socket.destroy();
  parentPort?.close();
});
