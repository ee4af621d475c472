// Several processes on one port. The first one starts the others, starts a new one when one dies, and hands signals on;
// it serves nothing itself. Each of the others is a whole service; what keeps them from each other's way is the store.

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Between the death of a process and the start of the next: one that dies at once must not keep the machine busy. */
const RESTART_PAUSE_MS = 1_000;

export interface Processes {
  readonly url: string;
  /** Lets each process stop as it does by itself, and resolves when all have. */
  stop(): Promise<void>;
}

/** Tells the first process that this one is up. To be called by the others. */
export function reportUp(url: string): void {
  process.send?.({ url });
}

/** Lets go of the first process, whose channel would keep this one alive. */
export function leave(): void {
  process.disconnect?.();
}

/** Whether this process is one of those that another has started. */
export function isOneOfMany(): boolean {
  return cluster.isWorker;
}

/**
 * Starts `count` processes that run the same command line as this one.
 *
 * @param onDeath told of each process that ended without having been asked to
 * @throws when one of them cannot start; it has said why, and the others are stopped
 */
export async function startProcesses(count: number, onDeath: (pid: number) => void): Promise<Processes> {
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(workers.map(stopWorker));
  };
  const keep = async (worker: Worker): Promise<void> => {
    await once(worker, 'exit');
    if (isStopping) return;
    onDeath(worker.process.pid ?? 0);
    await sleep(RESTART_PAUSE_MS);
    if (!isStopping) void keep(cluster.fork());
  };
  const workers = Array.from({ length: count }, () => cluster.fork());
  try {
    const [url] = await Promise.all(workers.map(untilUp));
    for (const worker of workers) void keep(worker);
    return { url: url as string, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilUp(worker: Worker): Promise<string> {
  const message = once(worker, 'message').then(([{ url }]) => url as string);
  const exit = once(worker, 'exit').then(() => Promise.reject(new Error('a process could not start')));
  exit.catch(() => {});
  return Promise.race([message, exit]);
}

async function stopWorker(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const ended = once(worker, 'exit');
  worker.process.kill('SIGTERM');
  await ended;
}
