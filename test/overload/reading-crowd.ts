// Clients that request lists and read the responses slowly, at full speed or not at all. They run in a worker thread,
// so that they do not slow down the measurement.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface ReadingCrowd {
  readonly port: number;
  readonly clients: number;
  readonly bytes: string;
  readonly pace: 'nothing' | 'slowly' | 'at full speed';
}

/** A slow client reads a chunk of up to 64 KiB, then pauses for this long. */
const SLOWLY_MS = 500;

/** The returned function stops the clients and returns how many MiB they received. */
export async function gather(crowd: ReadingCrowd): Promise<() => Promise<number>> {
  const worker = new Worker(import.meta.filename, { workerData: crowd });
  await once(worker, 'message');
  return async () => {
    worker.postMessage('leave');
    const [bytes] = (await once(worker, 'message')) as [number];
    await worker.terminate();
    return Math.round(bytes / 2 ** 20);
  };
}

async function readInThisThread({ port, clients, bytes, pace }: ReadingCrowd): Promise<void> {
  let taken = 0;
  const sockets = await Promise.all(
    Array.from({ length: clients }, async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      await once(socket, 'connect');
      return socket;
    }),
  );
  for (const socket of sockets) {
    if (pace !== 'nothing')
      socket.on('data', ({ length }) => {
        taken += length;
        if (pace === 'at full speed') return;
        socket.pause();
        setTimeout(() => socket.resume(), SLOWLY_MS);
      });
    socket.write(bytes);
  }
  parentPort?.postMessage('there');
  parentPort?.once('message', () => {
    for (const socket of sockets) socket.destroy();
    parentPort?.postMessage(taken);
  });
}

if (!isMainThread) void readInThisThread(workerData);
