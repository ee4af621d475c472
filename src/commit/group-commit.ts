// The one way in for writes. Commands that arrive while a batch is being written wait, and make up the next batch: one
// fsync for all of them, and no timer, so that a lone command waits for nobody.
//
//   submit ──▶ waiting ──▶ in the batch ──▶ durable ──▶ answered
//      └── no room: Overloaded, at once         └── still catching up with missed periods: waiting again

import assert from 'node:assert/strict';
import type { Command, Outcome } from '../ledger/command.ts';
import { type Store, StoreFault } from '../store/store.ts';

export type Answer = (result: Outcome | StoreFault) => void;

export interface QueueLimits {
  readonly commandsMax: number;
  readonly bytesMax: number;
}

/** A third of a second of work at 30,000 commands a second: who would wait longer is better told at once. */
export const QUEUE_LIMITS: QueueLimits = { commandsMax: 10_000, bytesMax: 8 * 2 ** 20 };

/** Past this, a larger batch saves nothing more of the fsync and makes everybody in it wait longer. */
const BATCH_COMMANDS_MAX = 512;

/** What a waiting command costs beside its strings: the object, its fields and its place in the queue. */
const COMMAND_BYTES = 256;
const CHARACTER_BYTES = 2;

interface Waiting {
  readonly command: Command;
  readonly answer: Answer;
}

export interface CommitCounts {
  batches: number;
  commands: number;
  refusals: number;
  overloads: number;
  faults: number;
  /** Seconds that batches took from the first load to stable storage, summed. */
  seconds: number;
}

export class GroupCommit {
  readonly counts: CommitCounts = { batches: 0, commands: 0, refusals: 0, overloads: 0, faults: 0, seconds: 0 };
  readonly #store: Store;
  readonly #limits: QueueLimits;
  readonly #onHealth: (trouble: StoreFault | null) => void;
  #trouble: StoreFault | null = null;
  readonly #requests: Waiting[] = [];
  readonly #renewals: Waiting[] = [];
  #bytes = 0;
  #isScheduled = false;
  #isWriting = false;
  readonly #whenEmpty: (() => void)[] = [];

  /** @param onHealth told of a fault that befalls a batch when the one before had another or none, and with null of its end */
  constructor(
    store: Store,
    limits: QueueLimits = QUEUE_LIMITS,
    onHealth: (trouble: StoreFault | null) => void = () => {},
  ) {
    this.#store = store;
    this.#limits = limits;
    this.#onHealth = onHealth;
  }

  /** How many commands are waiting. */
  get queued(): number {
    return this.#requests.length + this.#renewals.length;
  }

  /** Calls `answer` once: with an outcome when the command is durable or refused, with a fault when it is neither. */
  submit(command: Command, answer: Answer): void {
    const bytes = bytesOf(command);
    if (this.queued >= this.#limits.commandsMax || this.#bytes + bytes > this.#limits.bytesMax) {
      this.counts.overloads += 1;
      answer(new StoreFault('Overloaded', 'Too many writes are waiting.'));
      return;
    }
    this.#bytes += bytes;
    this.#queueOf(command).push({ command, answer });
    this.#schedule();
  }

  /** Resolves when all that was submitted is answered. */
  async drained(): Promise<void> {
    if (this.queued === 0 && !this.#isWriting) return;
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** After the current turn of the event loop, so that all requests which arrived in it share a batch. */
  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#writeBatch();
    });
  }

  #writeBatch(): void {
    assert(!this.#isWriting, 'one batch at a time, so that the next one can grow');
    this.#isWriting = true;
    const batch = this.#take();
    const started = performance.now();
    const done = (results: readonly (Outcome | StoreFault | null)[], fault: StoreFault | null) => {
      this.counts.batches += 1;
      this.counts.seconds += (performance.now() - started) / 1_000;
      this.#isWriting = false;
      this.#notice(fault);
      this.#finishBatch(batch, results);
    };
    this.#store.write(batch.map(({ command }) => command)).then(
      (outcomes) => done(outcomes, null),
      (error) => {
        const fault = error instanceof StoreFault ? error : new StoreFault('Internal', String(error));
        done(
          batch.map(() => fault),
          fault,
        );
      },
    );
  }

  /** Tells of a change only: a store that is down fails every batch, and a log line for each would be a second outage. */
  #notice(fault: StoreFault | null): void {
    if (fault !== null) this.counts.faults += 1;
    if (fault?.code !== this.#trouble?.code) this.#onHealth(fault);
    this.#trouble = fault;
  }

  /** Requests come first: renewals have all the time that nobody asks for. */
  #take(): Waiting[] {
    const requests = this.#requests.splice(0, BATCH_COMMANDS_MAX);
    return requests.concat(this.#renewals.splice(0, BATCH_COMMANDS_MAX - requests.length));
  }

  /** The next batch is sent off before this one is answered, so that the store never waits for the answers to be written. */
  #finishBatch(batch: readonly Waiting[], results: readonly (Outcome | StoreFault | null)[]): void {
    assert(results.length === batch.length, 'the store answers every command');
    batch.forEach((waiting, index) => {
      if (results[index] === null) this.#queueOf(waiting.command).push(waiting);
    });
    if (this.queued > 0) this.#writeBatch();
    batch.forEach((waiting, index) => {
      const result = results[index] as Outcome | StoreFault | null;
      if (result !== null) this.#finish(waiting, result);
    });
    if (this.queued === 0 && !this.#isWriting) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  #queueOf(command: Command): Waiting[] {
    return command.kind === 'renew' ? this.#renewals : this.#requests;
  }

  #finish({ command, answer }: Waiting, result: Outcome | StoreFault): void {
    this.#bytes -= bytesOf(command);
    if (!(result instanceof StoreFault)) {
      this.counts.commands += 1;
      if (result.refused !== null) this.counts.refusals += 1;
    }
    answer(result);
  }
}

function bytesOf(command: Command): number {
  const actor = command.kind === 'renew' ? '' : command.actor;
  return COMMAND_BYTES + CHARACTER_BYTES * (command.endUser.length + actor.length);
}
