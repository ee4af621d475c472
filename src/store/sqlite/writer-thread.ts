// The writer's thread: one message in for a batch, one message out.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { EndUserKey } from '../../ledger/command.ts';
import { type FaultCode, StoreFault } from '../store.ts';
import { commandsOf, writtenText } from './batch-message.ts';
import { LedgerClock } from './ledger-clock.ts';
import { RenewalTurns, type Renewed } from './renewal-turns.ts';
import { Writer, type WriterOptions } from './writer.ts';

export interface WriterData {
  readonly file: string;
  readonly clock: SharedArrayBuffer;
  readonly options: Partial<WriterOptions>;
}

export type WriterMessage =
  /** As `commandsText` writes them. */
  | { readonly commands: string }
  | { readonly forgetOlderThanMs: number }
  | { readonly usedKeys: readonly number[] }
  | 'renew'
  | 'close';

export interface Failed {
  readonly fault: FaultCode;
  readonly reason: string;
}

/** To batches and the like, in the order in which they came. */
export type WriterAnswer =
  /** As `writtenText` writes it. */
  { readonly written: string } | { readonly forgotten: number } | { readonly noted: true };

export type WriterReply =
  | WriterAnswer
  /** Not in turn with the answers to the others: batches go before. */
  | { readonly renewed: Renewed | Failed }
  | Failed
  /** Not an answer to a batch: what the writer found out by itself. */
  | { readonly trouble: Failed | null }
  | { readonly postedAlone: readonly EndUserKey[] }
  | 'open'
  | 'closed';

/** How often the latest instant is kept when nobody writes, and a store that failed is tried again. */
const TICK_MS = 1_000;

if (parentPort === null) throw new Error('writer-thread.ts is run as a thread only');
try {
  const { file, clock, options } = workerData as WriterData;
  serve(new Writer(file, new LedgerClock(Date.now, clock), options), parentPort);
} catch (error) {
  // Whoever waits for `open` is told why there is none; with nobody listening, the thread ends.
  parentPort.postMessage({ fault: 'StoreUnavailable', reason: (error as Error).message } satisfies WriterReply);
}

function serve(writer: Writer, port: MessagePort): void {
  let isTroubled = false;
  const tick = () => {
    const ticked = attempt(() => ({ postedAlone: writer.tick() }));
    const failed = 'fault' in ticked ? ticked : null;
    if ('postedAlone' in ticked && ticked.postedAlone.length > 0) port.postMessage(ticked satisfies WriterReply);
    if (failed !== null || isTroubled) port.postMessage({ trouble: failed } satisfies WriterReply);
    isTroubled = failed !== null;
  };
  // What a failed COMMIT left in the file is settled by opening it anew and writing over it: at once, if that works.
  const recover = () => {
    isTroubled = true;
    tick();
  };
  const renewals = new RenewalTurns<string>(writer, {
    write: (batches) => {
      const replies = attempt(() => writtenTogether(writer, batches));
      for (const reply of 'fault' in replies ? batches.map(() => replies) : replies) port.postMessage(reply);
      if ('fault' in replies) recover();
    },
    tell: (renewed) => {
      const isFault = renewed instanceof StoreFault;
      port.postMessage({ renewed: isFault ? failedOf(renewed) : renewed } satisfies WriterReply);
      if (isFault) recover();
    },
  });
  const ticking = setInterval(tick, TICK_MS);
  port.on('message', (message: WriterMessage) => {
    if (message === 'renew') renewals.ask();
    else if (message === 'close') {
      clearInterval(ticking);
      renewals.stop();
      attempt(() => writer.close());
      port.postMessage('closed' satisfies WriterReply);
      port.close();
    } else if ('commands' in message) renewals.write(message.commands);
    else {
      // Answers come in the order of the messages.
      renewals.flush();
      const reply = attempt(() => answerTo(writer, message));
      port.postMessage(reply);
      if ('fault' in reply) recover();
    }
  });
  port.postMessage('open' satisfies WriterReply);
}

/** Batches that have come in one behind the other are decided in that order, as one. */
function writtenTogether(writer: Writer, batches: readonly string[]): { readonly written: string }[] {
  const each = batches.map(commandsOf);
  const { outcomes, heads, posted } = writer.write(each.flat());
  let from = 0;
  return each.map(({ length }, index) => {
    const to = from + length;
    const part = {
      outcomes: outcomes.slice(from, to),
      heads: heads.slice(from, to),
      posted: index === 0 ? posted : [],
    };
    from = to;
    return { written: writtenText(part) };
  });
}

function answerTo(writer: Writer, message: Exclude<WriterMessage, 'close' | 'renew' | { commands: string }>) {
  if ('forgetOlderThanMs' in message) return { forgotten: writer.deleteExpiredRecords(message.forgetOlderThanMs) };
  writer.noteKeyUses(message.usedKeys);
  return { noted: true } as const;
}

function attempt<Result>(work: () => Result): Result | Failed {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreFault) return failedOf(error);
    throw error;
  }
}

function failedOf({ code, message }: StoreFault): Failed {
  return { fault: code, reason: message };
}
