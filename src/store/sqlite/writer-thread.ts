// The writer's thread: one message in for a batch, one message out.

import { parentPort, workerData } from 'node:worker_threads';
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

const { file, clock } = workerData as WriterData;
const port = parentPort;
if (port === null) throw new Error('writer-thread.ts is run as a thread only');

const writer = open();
const keeper = setInterval(() => answer(() => writer.keepTime()), KEEP_TIME_MS);
port.postMessage('open' satisfies WriterReply);

port.on('message', (message: WriterMessage) => {
  if (message === 'close') {
    clearInterval(keeper);
    answer(() => writer.close());
    port.postMessage('closed' satisfies WriterReply);
    port.close();
    return;
  }
  port.postMessage(answer(() => ({ outcomes: writer.write(message.commands) })));
});

function open(): Writer {
  try {
    return new Writer(file, new LedgerClock(Date.now, clock));
  } catch (error) {
    port?.postMessage({ fault: 'StoreUnavailable', reason: (error as Error).message } satisfies WriterReply);
    process.exit(1);
  }
}

function answer<Result>(work: () => Result): Result | WriterReply {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreFault) return { fault: error.code, reason: error.message };
    throw error;
  }
}
