// The writer's thread: one message in for a batch, one message out.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Command, Outcome } from '../../ledger/command.ts';
import { type FaultCode, StoreFault } from '../store.ts';
import { LedgerClock } from './ledger-clock.ts';
import { Writer } from './writer.ts';

export interface WriterData {
  readonly file: string;
  readonly clock: SharedArrayBuffer;
}

export type WriterMessage = { readonly commands: readonly Command[] } | 'close';

export type WriterReply =
  | { readonly outcomes: readonly (Outcome | null)[] }
  | { readonly fault: FaultCode; readonly reason: string }
  | 'open'
  | 'closed';

/** How often the latest instant is kept when nobody writes. */
const KEEP_TIME_MS = 1_000;

if (parentPort === null) throw new Error('writer-thread.ts is run as a thread only');
try {
  const { file, clock } = workerData as WriterData;
  serve(new Writer(file, new LedgerClock(Date.now, clock)), parentPort);
} catch (error) {
  // Whoever waits for `open` is told why there is none; with nobody listening, the thread ends.
  parentPort.postMessage({ fault: 'StoreUnavailable', reason: (error as Error).message } satisfies WriterReply);
}

function serve(writer: Writer, port: MessagePort): void {
  const keeper = setInterval(() => answer(() => writer.keepTime()), KEEP_TIME_MS);
  port.on('message', (message: WriterMessage) => {
    if (message !== 'close') {
      port.postMessage(answer(() => ({ outcomes: writer.write(message.commands) })));
      return;
    }
    clearInterval(keeper);
    answer(() => writer.close());
    port.postMessage('closed' satisfies WriterReply);
    port.close();
  });
  port.postMessage('open' satisfies WriterReply);
}

function answer<Result>(work: () => Result): Result | WriterReply {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreFault) return { fault: error.code, reason: error.message };
    throw error;
  }
}
