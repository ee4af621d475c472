// Clients that ask for lists and read them slowly, at full speed or not at all, in a thread of their own, so that what
// they read does not hold up those who measure.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface ReadingCrowd {
  readonly port: number;
  readonly clients: number;
  /** All that each of them sends, at once. */
  readonly bytes: string;
  readonly pace: 'nothing' | 'slowly' | 'at full speed';
}

/** Who reads slowly takes what there is, 64 KiB at the most, so often. */
const SLOWLY_MS = 500;

/** @returns what to call at the end, for how many MiB all of them were sent */
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
