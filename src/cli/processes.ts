// Worker processes that share one port. Each worker runs a complete service. The primary process starts, replaces and
// stops the workers; it serves no requests itself.
//
//   primary ── fork ──▶ worker ── listening ──▶ serving ── exit ──▶ a new worker, after a pause

import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';

/** Without this pause, a worker that fails at every start would be restarted in a busy loop. */
const RESTART_PAUSE_MS = 1_000;

export interface Processes {
  /**
   * Resolves to the URL when all workers are listening, or to null if `stop` is called first. Rejects if a worker
   * cannot start: that worker has printed the reason, and all other workers have been stopped.
   */
  readonly url: Promise<string | null>;
  /** Sends SIGTERM to all workers and waits until they have exited. */
  stop(): Promise<void>;
}

/**
 * Starts `count` workers with the command line of this process. The first worker starts alone: if the workers cannot
 * listen, the reason is then printed only once.
 *
 * @param onUnexpectedExit called with the process ID of each worker that exits before `stop` is called; null if a
 * replacement could not be started
 */
export function startProcesses(count: number, onUnexpectedExit: (pid: number | null) => void): Processes {
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(workers.map(stopWorker));
  };
  const replaceOnExit = async (worker: Worker): Promise<void> => {
    await ended(worker);
    if (isStopping) return;
    await replace(worker.process.pid ?? null);
  };
  const replace = async (exited: number | null): Promise<void> => {
    onUnexpectedExit(exited);
    await sleep(RESTART_PAUSE_MS);
    if (isStopping) return;
    try {
      void replaceOnExit(forked());
    } catch {
      // Node.js throws some errors of `fork`, for example for lack of memory, and reports others with an event.
      await replace(null);
    }
  };
  const startOne = async (): Promise<string> => {
    const worker = forked();
    const url = await listening(worker);
    void replaceOnExit(worker);
    return url;
  };
  const startAll = async (): Promise<string | null> => {
    try {
      const url = await startOne();
      await Promise.all(Array.from({ length: isStopping ? 0 : count - 1 }, startOne));
      return url;
    } catch (error) {
      if (isStopping) return null;
      await stop();
      throw error;
    }
  };
  return { url: startAll(), stop };
}

function forked(): Worker {
  // Without a listener, an `error` event would end this process.
  return cluster.fork().on('error', () => {});
}

/** Resolves with the URL of the worker; rejects if the worker ends first. */
async function listening(worker: Worker): Promise<string> {
  const message = new Promise<string>((resolve) => worker.once('message', ({ url }) => resolve(url)));
  const end = ended(worker).then(() => Promise.reject(new Error('a worker process ended before listening')));
  end.catch(() => {});
  return Promise.race([message, end]);
}

/** Resolves when the worker has exited, or if it could not be started, for lack of memory for example. */
function ended(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve());
    worker.once('error', () => resolve());
  });
}

async function stopWorker(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const end = ended(worker);
  worker.process.kill('SIGTERM');
  await end;
}
