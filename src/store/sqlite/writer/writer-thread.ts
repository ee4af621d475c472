// The writer's thread: replies to requests in their order, and reports events of the writer.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Command } from '../../../ledger/command.ts';
import type { IdempotencyRetention } from '../../ledger-store.ts';
import { type FaultCode, StoreFault } from '../../store-fault.ts';
import type { TestClockMove } from '../../test-clock.ts';
import type { ImportPart } from '../../tools/ledger-import.ts';
import type { EventPart } from '../journal/events.ts';
import type { SummaryPart } from '../journal/summaries.ts';
import { LedgerClock } from './ledger-clock.ts';
import { Writer, type WriterOptions } from './writer.ts';
import { writtenText } from './written.ts';

export interface WriterData {
  readonly file: string;
  readonly clock: SharedArrayBuffer;
  readonly isTestClock: boolean;
  readonly options: Partial<WriterOptions>;
}

export type WriterRequest =
  /** The commands as JSON. */
  | { readonly commands: string; readonly part: ImportPart | null }
  | { readonly updateTotals: true }
  | { readonly summaries: SummaryPart }
  | { readonly events: EventPart }
  /** The retention in milliseconds. */
  | { readonly deleteEvents: number }
  | { readonly deleteExpired: IdempotencyRetention }
  | { readonly usedKeys: readonly number[] }
  | { readonly moveClock: TestClockMove };

export type ThreadMessage = WriterRequest | 'close';

/** The result of the writer's method; for commands, the text from `writtenText`. */
export type Reply = string | boolean | number | null | undefined;

export interface Failed {
  readonly fault: FaultCode;
  readonly reason: string;
}

export type ThreadReply =
  | { readonly reply: Reply }
  | Failed
  /** An event: the writer has failed with this fault, or works again (null). */
  | { readonly trouble: Failed | null }
  /** An event: this many generations of pending balances have been flushed. */
  | { readonly rotations: number }
  | 'open';

/**
 * The interval between ticks. A tick saves the latest instant if no write has saved it, flushes balances if nothing is
 * written, and tries to recover after a failure.
 */
const TICK_MS = 1_000;

if (parentPort === null) throw new Error('writer-thread.ts must run as a worker thread');
try {
  const { file, clock: shared, isTestClock: isTest, options } = workerData as WriterData;
  serve(new Writer(file, new LedgerClock(Date.now, { isTest, shared }), options), parentPort);
} catch (error) {
  // The reply if the file cannot be opened. The thread then exits, since no listener keeps it running.
  parentPort.postMessage({ fault: 'StoreUnavailable', reason: (error as Error).message } satisfies ThreadReply);
}

function serve(writer: Writer, port: MessagePort): void {
  const send = (reply: ThreadReply) => port.postMessage(reply);
  let isTroubled = false;
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
  const ticking = setInterval(tick, TICK_MS);
  port.on('message', (message: ThreadMessage) => {
    if (message === 'close') {
      clearInterval(ticking);
      attempt(() => writer.close());
      port.close();
      return;
    }
    const reply = attempt(() => ({ reply: handle(writer, message) }));
    send(reply);
    // Recover at once: only reopening the file shows whether the transaction of a failed COMMIT is stored.
    if ('fault' in reply) {
      isTroubled = true;
      tick();
    }
  });
  send('open');
}

function handle(writer: Writer, request: WriterRequest): Reply {
  if ('commands' in request) return writtenText(writer.write(JSON.parse(request.commands) as Command[], request.part));
  if ('deleteExpired' in request) return writer.deleteExpiredRecords(request.deleteExpired);
  if ('updateTotals' in request) return writer.updateTotals();
  if ('summaries' in request) return writer.saveSummaries(request.summaries);
  if ('events' in request) return writer.saveEvents(request.events);
  if ('deleteEvents' in request) return writer.deleteExpiredEvents(request.deleteEvents);
  if ('moveClock' in request) return writer.moveClock(request.moveClock);
  writer.recordKeyUses(request.usedKeys);
  return undefined;
}

function attempt<Result>(work: () => Result): Result | Failed {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    return { fault: error.code, reason: error.message };
  }
}
