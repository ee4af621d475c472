// The writer of a ledger file as the store sees it: in a thread of its own, or in place where a test moves the clock.

import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Command, EndUserKey } from '../../ledger/command.ts';
import { CannotOpen, StoreFault } from '../store.ts';
import { commandsText, writtenOf } from './batch-message.ts';
import type { LedgerClock } from './ledger-clock.ts';
import { RenewalTurns, type Renewed } from './renewal-turns.ts';
import { faultOf } from './sqlite-error.ts';
import { Writer, type WriterOptions, type Written } from './writer.ts';
import type { Failed, WriterAnswer, WriterData, WriterMessage, WriterReply } from './writer-thread.ts';

/** Of the same kind as this file: TypeScript in the sources, JavaScript in the package. */
const WRITER_THREAD = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);

/**
 * What a batch leaves behind is dead when it is answered: V8 lets this part of the heap grow to 48 MiB all the same, and
 * is no faster for it.
 */
const maxYoungGenerationSizeMb = 24;

export interface BatchWriter {
  /** Called when the writer finds out by itself that it works, or no longer does. */
  onHealth: (trouble: StoreFault | null) => void;
  /** Called with the end users that were posted, but by a batch. */
  onPosted: (posted: readonly EndUserKey[]) => void;
  /** @param onSent called when the next batch may be sent, which then waits for this one */
  write(commands: readonly Command[], onSent: () => void): Promise<Written>;
  /** Enters some of the renewals that are due, behind whoever writes. */
  renewDue(): Promise<Renewed>;
  deleteExpiredRecords(ageMs: number): Promise<number>;
  noteKeyUses(ids: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

/** Works in the caller's thread. */
export class WriterInPlace implements BatchWriter {
  onHealth: BatchWriter['onHealth'] = () => {};
  onPosted: BatchWriter['onPosted'] = () => {};
  readonly #writer: Writer;

  constructor(file: string, clock: LedgerClock, options: Partial<WriterOptions>) {
    this.#writer = new Writer(file, clock, options);
  }

  async write(commands: readonly Command[]): Promise<Written> {
    try {
      return this.#writer.write(commands);
    } catch (error) {
      this.#recover();
      throw error;
    }
  }

  async renewDue(): Promise<Renewed> {
    const { promise, resolve, reject } = Promise.withResolvers<Renewed>();
    const tell = (renewed: Renewed | StoreFault) => {
      if (!(renewed instanceof StoreFault)) resolve(renewed);
      else {
        this.#recover();
        reject(renewed);
      }
    };
    new RenewalTurns<never>(this.#writer, { write: () => {}, tell, nextTurn: (work) => work() }).ask();
    return promise;
  }

  async deleteExpiredRecords(ageMs: number): Promise<number> {
    return this.#writer.deleteExpiredRecords(ageMs);
  }

  async noteKeyUses(ids: readonly number[]): Promise<void> {
    this.#writer.noteKeyUses(ids);
  }

  async close(): Promise<void> {
    this.#writer.close();
  }

  /** At once, as the thread does; told of behind the fault. */
  #recover(): void {
    let trouble: StoreFault | null = null;
    try {
      this.#writer.tick();
    } catch (error) {
      trouble = faultOf(error);
    }
    queueMicrotask(() => this.onHealth(trouble));
  }
}

/** The writer's thread, seen from here. Batches are answered in the order in which they were sent. */
export class ThreadedWriter implements BatchWriter {
  onHealth: BatchWriter['onHealth'] = () => {};
  onPosted: BatchWriter['onPosted'] = () => {};
  readonly #worker: Worker;
  readonly #answers = new AwaitedReplies<WriterAnswer>();
  /** Not in turn with the answers. */
  readonly #renewals = new AwaitedReplies<Renewed>();
  #closed = false;

  static async open(file: string, clock: LedgerClock, options: Partial<WriterOptions>): Promise<ThreadedWriter> {
    const workerData: WriterData = { file, clock: clock.shared, options };
    const worker = new Worker(WRITER_THREAD, { workerData, resourceLimits: { maxYoungGenerationSizeMb } });
    const [first] = (await once(worker, 'message')) as [WriterReply];
    if (typeof first === 'object') throw new CannotOpen('reason' in first ? first.reason : 'the writer did not start');
    return new ThreadedWriter(worker);
  }

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on('message', (reply: WriterReply) => this.#take(reply));
    worker.on('error', (error) => this.#fail(String(error)));
    worker.on('exit', () => this.#fail('the writer has ended'));
  }

  /** The next batch is there when this one is done, so that the thread need not wait for it. */
  async write(commands: readonly Command[], onSent: () => void): Promise<Written> {
    const reply = this.#ask({ commands: commandsText(commands) }, this.#answers);
    onSent();
    return writtenOf(((await reply) as { readonly written: string }).written);
  }

  renewDue(): Promise<Renewed> {
    return this.#ask('renew', this.#renewals);
  }

  async deleteExpiredRecords(ageMs: number): Promise<number> {
    const reply = (await this.#ask({ forgetOlderThanMs: ageMs }, this.#answers)) as { readonly forgotten: number };
    return reply.forgotten;
  }

  async noteKeyUses(ids: readonly number[]): Promise<void> {
    await this.#ask({ usedKeys: ids }, this.#answers);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.postMessage('close' satisfies WriterMessage);
    await ended;
  }

  #ask<Reply extends object>(message: WriterMessage, awaited: AwaitedReplies<Reply>): Promise<Reply> {
    if (this.#closed) return Promise.reject(new StoreFault('Internal', 'the writer has ended'));
    this.#worker.postMessage(message);
    return awaited.next();
  }

  #take(reply: WriterReply): void {
    if (reply === 'open' || reply === 'closed') return;
    if ('postedAlone' in reply) {
      this.onPosted(reply.postedAlone);
      return;
    }
    if ('trouble' in reply) {
      const { trouble } = reply;
      this.onHealth(trouble && new StoreFault(trouble.fault, trouble.reason));
      return;
    }
    if ('renewed' in reply) this.#renewals.take(reply.renewed);
    else this.#answers.take(reply);
  }

  /** What was under way when the thread died may or may not be in the file. */
  #fail(reason: string): void {
    if (!this.#closed) this.onHealth(new StoreFault('Internal', reason));
    this.#closed = true;
    const fault = { fault: 'OutcomeUnknown', reason } as const;
    this.#answers.failAll(fault);
    this.#renewals.failAll(fault);
  }
}

/** Replies that are awaited, and come in the order in which they were asked for. */
class AwaitedReplies<Reply extends object> {
  readonly #waiting: { resolve: (reply: Reply) => void; reject: (fault: StoreFault) => void }[] = [];

  next(): Promise<Reply> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  take(reply: Reply | Failed): void {
    const first = this.#waiting.shift();
    if ('fault' in reply) first?.reject(new StoreFault(reply.fault, reply.reason));
    else first?.resolve(reply);
  }

  failAll(failed: Failed): void {
    while (this.#waiting.length > 0) this.take(failed);
  }
}
