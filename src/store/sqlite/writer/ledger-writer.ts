// The asynchronous interface to the writer of a ledger file. The writer runs in its own thread, or in the caller's
// thread if a test controls the clock.

import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CannotOpen, StoreFault } from '../../store-fault.ts';
import { faultOf } from '../file/sqlite-error.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { Writer, type WriterOptions } from './writer.ts';
import type { Failed, ThreadMessage, ThreadReply, WriterData, WriterMethod, WriterRequest } from './writer-thread.ts';
import { writtenOf } from './written.ts';

/** This file has the extension `.ts` in the repository, and `.js` in the package. */
const WRITER_THREAD = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);

/**
 * By default, V8's young generation grows to 48 MiB, but the writer is just as fast with 24 MiB. By default, the old
 * generation grows to four times the memory in use. With a limit of 1 GiB, the old generation grows to only 1.6 times
 * the memory in use. The writer's bounded caches need only about 100 MiB.
 */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 1_024 };

/** The writer reports these events on its own, not in response to a request. */
export interface WriterEvents {
  /** Called with a fault when the writer has failed, and with null when the writer works again. */
  onTrouble(trouble: StoreFault | null): void;
  /** Called after `count` generations of pending balances have been flushed. */
  onRotations(count: number): void;
}

/** Calls the methods of the writer, in the order of the calls. */
export interface LedgerWriter {
  /** @throws StoreFault (rejects) if the store fails */
  call<Name extends WriterMethod>(name: Name, ...parameters: Parameters<Writer[Name]>): Promise<Result<Name>>;
  close(): Promise<void>;
}

type Result<Name extends WriterMethod> = ReturnType<Writer[Name]>;

export class WriterInPlace implements LedgerWriter {
  readonly #writer: Writer;
  readonly #events: WriterEvents;
  #isClosed = false;

  constructor(file: string, clock: LedgerClock, options: Partial<WriterOptions>, events: WriterEvents) {
    this.#writer = new Writer(file, clock, options);
    this.#events = events;
  }

  async call<Name extends WriterMethod>(name: Name, ...parameters: Parameters<Writer[Name]>): Promise<Result<Name>> {
    try {
      return Reflect.apply(this.#writer[name], this.#writer, parameters);
    } catch (error) {
      if (error instanceof StoreFault) this.#recover();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#writer.close();
  }

  /** Recovers immediately, but calls `onTrouble` only after the failed request has been rejected. */
  #recover(): void {
    let trouble: StoreFault | null = null;
    try {
      this.#writer.tick();
    } catch (error) {
      trouble = faultOf(error);
    }
    setImmediate(() => {
      if (!this.#isClosed) this.#events.onTrouble(trouble);
    });
  }
}

export class ThreadedWriter implements LedgerWriter {
  readonly #worker: Worker;
  readonly #events: WriterEvents;
  readonly #asked: PromiseWithResolvers<unknown>[] = [];
  #isClosed = false;

  static async open(
    file: string,
    clock: LedgerClock,
    options: Partial<WriterOptions>,
    events: WriterEvents,
  ): Promise<ThreadedWriter> {
    const workerData: WriterData = { file, clock: clock.shared, isTestClock: clock.isTest, options };
    const worker = new Worker(WRITER_THREAD, { workerData, resourceLimits: RESOURCE_LIMITS });
    const [first] = (await once(worker, 'message')) as [ThreadReply];
    if (first !== 'open') throw new CannotOpen('reason' in first ? first.reason : 'the writer thread did not start');
    return new ThreadedWriter(worker, events);
  }

  private constructor(worker: Worker, events: WriterEvents) {
    this.#worker = worker;
    this.#events = events;
    worker.on('message', (reply: ThreadReply) => this.#receive(reply));
    worker.on('error', (error) => this.#fail(String(error)));
    worker.on('exit', () => this.#fail('the writer thread has ended'));
  }

  /** JSON is copied to the writer thread faster than objects. */
  async call<Name extends WriterMethod>(name: Name, ...parameters: Parameters<Writer[Name]>): Promise<Result<Name>> {
    const reply = await this.#ask({ name, parameters: JSON.stringify(parameters) });
    return (name === 'write' ? writtenOf(reply as string) : reply) as Result<Name>;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    const ended = once(this.#worker, 'exit');
    this.#worker.postMessage('close' satisfies ThreadMessage);
    await ended;
  }

  #ask(request: WriterRequest): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new StoreFault('Internal', 'the writer thread has ended'));
    const asked = Promise.withResolvers<unknown>();
    this.#asked.push(asked);
    this.#worker.postMessage(request satisfies ThreadMessage);
    return asked.promise;
  }

  #receive(message: ThreadReply): void {
    if (message === 'open') return;
    if ('rotations' in message) this.#events.onRotations(message.rotations);
    else if ('trouble' in message) this.#events.onTrouble(message.trouble && storeFaultOf(message.trouble));
    else if ('reply' in message) this.#asked.shift()?.resolve(message.reply);
    else this.#asked.shift()?.reject(storeFaultOf(message));
  }

  /** The writer thread has ended. It is unknown whether the writes in flight are stored. */
  #fail(reason: string): void {
    if (!this.#isClosed) this.#events.onTrouble(new StoreFault('Internal', reason));
    this.#isClosed = true;
    for (const asked of this.#asked.splice(0)) asked.reject(new StoreFault('OutcomeUnknown', reason));
  }
}

function storeFaultOf({ fault, reason }: Failed): StoreFault {
  return new StoreFault(fault, reason);
}
