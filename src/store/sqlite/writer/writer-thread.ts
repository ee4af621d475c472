// Runs the writer in its own thread, replies to requests in the order in which they arrive, and reports the writer's
// events.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type FaultCode, StoreFault } from '../../store-fault.ts';
import { LedgerClock } from './ledger-clock.ts';
import { Writer, type WriterOptions } from './writer.ts';
import { writtenText } from './written.ts';

export interface WriterData {
  readonly file: string;
  readonly clock: SharedArrayBuffer;
  readonly isTestClock: boolean;
  readonly options: Partial<WriterOptions>;
}

/** The methods of `Writer` that the main thread calls. */
export type WriterMethod =
  | 'write'
  | 'deleteExpiredRecords'
  | 'updateTotals'
  | 'saveEvents'
  | 'deleteExpiredEvents'
  | 'recordKeyUses'
  | 'moveClock';

export interface WriterRequest {
  readonly name: WriterMethod;
  /** JSON. */
  readonly parameters: string;
}

export type ThreadMessage = WriterRequest | 'close';

export interface Failed {
  readonly fault: FaultCode;
  readonly reason: string;
}

export type ThreadReply =
  /** The return value of the method. The result of a batch is sent as the text from `writtenText`. */
  | { readonly reply: unknown }
  | Failed
  /** An event that reports why the writer has failed; null reports that the writer works again. */
  | { readonly trouble: Failed | null }
  /** An event that reports how many generations of pending balances have been flushed. */
  | { readonly rotations: number }
  | 'open';

/**
 * The interval between ticks. A tick saves the latest instant if no write has saved it yet, flushes pending balances if
 * the writer is idle, and reopens the file after a failure.
 */
const TICK_MS = 1_000;

/**
 * An idle writer flushes the balances of up to 2,000 end users a second, in this many steps. Between two steps, the
 * writer accepts new writes.
 */
const STEPS_PER_SECOND = 8;

if (parentPort === null) throw new Error('writer-thread.ts must run as a worker thread');
try {
  const { file, clock: shared, isTestClock: isTest, options } = workerData as WriterData;
  serve(new Writer(file, new LedgerClock(Date.now, { isTest, shared }), options), parentPort);
} catch (error) {
  // The main thread gets this reply if the file cannot be opened. The writer thread then exits, because no listener
  // keeps it running.
  parentPort.postMessage({ fault: 'StoreUnavailable', reason: (error as Error).message } satisfies ThreadReply);
}

function serve(writer: Writer, port: MessagePort): void {
  const send = (reply: ThreadReply) => port.postMessage(reply);
  let isTroubled = false;
  let nextStep: NodeJS.Immediate | undefined;
  const tick = () => {
    const ticked = attempt(() => writer.tick());
    if (typeof ticked === 'number') {
      if (ticked > 0) send({ rotations: ticked });
      if (isTroubled) send({ trouble: null });
      isTroubled = false;
    } else {
      send({ trouble: ticked });
      isTroubled = true;
    }
  };
  const flushInSteps = (steps: number) => {
    tick();
    if (steps > 1 && writer.isFlushing && !isTroubled) nextStep = setImmediate(flushInSteps, steps - 1);
  };
  const ticking = setInterval(flushInSteps, TICK_MS, STEPS_PER_SECOND);
  port.on('message', (message: ThreadMessage) => {
    if (message === 'close') {
      clearInterval(ticking);
      clearImmediate(nextStep);
      attempt(() => writer.close());
      port.close();
      return;
    }
    const reply = attempt(() => ({ reply: handle(writer, message) }));
    send(reply);
    // Recover immediately. If a COMMIT failed, only reopening the file shows whether the transaction is stored.
    if ('fault' in reply) {
      isTroubled = true;
      tick();
    }
  });
  send('open');
}

function handle(writer: Writer, { name, parameters }: WriterRequest): unknown {
  const result = Reflect.apply(writer[name], writer, JSON.parse(parameters));
  return name === 'write' ? writtenText(result) : result;
}

function attempt<Result>(work: () => Result): Result | Failed {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    return { fault: error.code, reason: error.message };
  }
}
