// The one way in for writes. Commands that arrive while a batch is being written wait, and make up the next batch: one
// fsync for all of them, and no timer, so that a lone command waits for nobody.
//
//   submit ──▶ waiting ──▶ in the batch ──▶ durable ──▶ answered
//      └── no room: Overloaded, at once         └── still catching up with missed periods: waiting again
//
// The store says in how many lanes it takes batches. All that concerns an end user goes through one of them, in order.
// A store may take the next batch of a lane once it has decided the one before, while that is becoming durable. In a
// lane the accounts take turns, and of the room there is an account may fill as much as it leaves free.

import assert from 'node:assert/strict';
import type { Command, Outcome } from '../ledger/command.ts';
import { type FaultCode, type Store, StoreFault } from '../store/store.ts';
import type { TracedBatch } from '../tracing/tracer.ts';
import { FairQueue } from './fair-queue.ts';
import { Histogram } from './histogram.ts';
import { ThroughputEstimate } from './throughput-estimate.ts';

export type ResultCallback = (result: Outcome | StoreFault) => void;

/** Whoever waits for an answer. */
export interface Requester {
  /** Whether nobody hears it any more. What nobody waits for is not begun. */
  readonly isDisconnected: boolean;
}

export interface QueueLimits {
  /** Of all accounts; one that is alone has half. */
  readonly commandsMax: number;
  /** As well. */
  readonly bytesMax: number;
}

/** A third of a second of work at 30,000 commands a second: who would wait longer is better told at once. */
export const QUEUE_LIMITS: QueueLimits = { commandsMax: 10_000, bytesMax: 16 * 2 ** 20 };

/** Past this, a larger batch saves nothing more of the fsync and makes everybody in it wait longer. */
export const BATCH_COMMANDS_MAX = 512;

/** With fewer waiting, how fast they are done says little of how fast more would be. */
const PACE_QUEUED_MIN = BATCH_COMMANDS_MAX;

/** Less than a millisecond of work: whoever waits for a batch is not to wait for many renewals as well. */
const RENEWALS_BESIDE_REQUESTS_MAX = 24;

/** With each batch in which nobody asked for anything: a request between two others does not wait for a long batch. */
const RENEWALS_GROWTH = 2;

/** What a waiting command costs beside its strings: the object, its fields and its place in the queue. */
const COMMAND_BYTES = 256;
const CHARACTER_BYTES = 2;

/** For what is not begun, since nobody waits for it. */
export const CANCELED = new StoreFault('Overloaded', 'Its client has gone.');

/** What an account has of the queue. */
interface Share {
  readonly account: number;
  commands: number;
  /** What is being written included. */
  bytes: number;
}

interface Waiting {
  readonly command: Command;
  readonly answer: ResultCallback;
  readonly requester: Requester | null;
  readonly share: Share;
}

interface Lane {
  readonly requests: FairQueue<Waiting>;
  readonly renewals: Waiting[];
  /** How many of them the next batch takes: few beside requests, more and more while nobody asks for anything. */
  renewalsMax: number;
  /** Batches: one, or two when the second follows one that is decided and not yet durable. */
  underWay: number;
  /** Commands in them. */
  commands: number;
  /** The batch that was sent off last. */
  last: Batch | null;
}

interface Batch {
  readonly size: number;
  /** Whether the store takes the next one. */
  isDecided: boolean;
}

/** A third batch would only wait behind the second. */
const UNDER_WAY_MAX = 2;

export interface CommitCounts {
  batches: number;
  commands: number;
  refusals: number;
  overloads: number;
  faults: number;
  /** Seconds that batches took from the first load to stable storage, summed. */
  seconds: number;
  /** Of the faults, how many of each kind. */
  readonly faultsByKind: Record<FaultCode, number>;
  /** Commands in a batch. */
  readonly sizes: Histogram;
  /** Seconds that a batch took. */
  readonly times: Histogram;
}

function noCounts(): CommitCounts {
  return {
    batches: 0,
    commands: 0,
    refusals: 0,
    overloads: 0,
    faults: 0,
    seconds: 0,
    faultsByKind: { Overloaded: 0, StoreUnavailable: 0, OutcomeUnknown: 0, Internal: 0 },
    sizes: new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, BATCH_COMMANDS_MAX]),
    times: new Histogram([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]),
  };
}

export class GroupCommit {
  readonly counts: CommitCounts = noCounts();
  /** Of the store, while more waits for it than it takes at once. */
  readonly pace = new ThroughputEstimate();
  /** Told of each batch before its commands are answered, and with null once they all are. */
  onAnswering: ((batch: TracedBatch | null) => void) | null = null;
  readonly #store: Store;
  readonly #limits: QueueLimits;
  readonly #onHealth: (trouble: StoreFault | null) => void;
  readonly #lanes: readonly Lane[];
  /** Of each account that has something in the queue or being written. */
  readonly #shares = new Map<number, Share>();
  /** The lane that is looked at first, each in its turn. */
  #turn = 0;
  #queued = 0;
  #bytes = 0;
  #writing = 0;
  #isScheduled = false;
  #trouble: StoreFault | null = null;
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
    this.#lanes = Array.from({ length: store.lanes.count }, () => ({
      requests: new FairQueue<Waiting>(),
      renewals: [],
      renewalsMax: RENEWALS_BESIDE_REQUESTS_MAX,
      underWay: 0,
      commands: 0,
      last: null,
    }));
  }

  /** How many commands are waiting. */
  get queued(): number {
    return this.#queued;
  }

  /**
   * Calls `answer` once: with an outcome when the command is durable or refused, with a fault when it is neither.
   *
   * @param requester null where it is to be done whoever hears of it
   */
  submit(command: Command, answer: ResultCallback, requester: Requester | null = null): void {
    const bytes = bytesOf(command);
    const share = this.#shares.get(command.account) ?? { account: command.account, commands: 0, bytes: 0 };
    if (!this.#hasRoom(command, share, bytes)) {
      this.counts.overloads += 1;
      answer(new StoreFault('Overloaded', 'Too many writes are waiting.'));
      return;
    }
    if (share.bytes === 0) this.#shares.set(command.account, share);
    share.bytes += bytes;
    this.#bytes += bytes;
    const lane = this.#lanes[this.#store.lanes.of(command)] as Lane;
    this.#enqueue(lane, { command, answer, requester, share });
    if (this.#isScheduled || !this.#isReady(lane)) return;
    // After the current turn of the event loop, so that all requests which arrived in it share a batch.
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#writeBatches();
      // Perhaps nobody waits any more for what there was.
      this.#tellIfEmpty();
    });
  }

  /** Resolves when all that was submitted is answered. */
  async drained(): Promise<void> {
    if (this.#queued === 0 && this.#writing === 0) return;
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** An account fills the queue as far as it leaves as much free. Renewals are the ledger's own, and few. */
  #hasRoom(command: Command, share: Share, bytes: number): boolean {
    const commandsFree = this.#limits.commandsMax - this.#queued;
    const bytesFree = this.#limits.bytesMax - this.#bytes;
    if (command.kind === 'renew') return commandsFree > 0 && bytesFree >= bytes;
    return share.commands < commandsFree && share.bytes + bytes <= bytesFree;
  }

  #enqueue(lane: Lane, waiting: Waiting): void {
    this.#queued += 1;
    waiting.share.commands += 1;
    if (waiting.command.kind === 'renew') lane.renewals.push(waiting);
    else lane.requests.push(waiting.command.account, waiting);
  }

  /** Sends off as many batches as the store takes at once. */
  #writeBatches(): void {
    const { length } = this.#lanes;
    for (let step = 0; step < length; step++) {
      const lane = this.#lanes[(this.#turn + step) % length] as Lane;
      if (this.#isReady(lane)) this.#writeNext(lane);
    }
    this.#turn = (this.#turn + 1) % length;
  }

  /**
   * A batch that follows another one before that is durable is no smaller: what waits would otherwise be spread over more
   * batches, which costs more than it saves. Where the store writes them together all the same, it has them at once,
   * as many as make up one.
   */
  #isReady({ requests, renewals, underWay, commands, last }: Lane): boolean {
    const waiting = requests.length + renewals.length;
    if (waiting === 0) return false;
    if (underWay === 0) return this.#writing < this.#store.lanes.atOnce;
    if (this.#store.isJoining?.()) return commands < BATCH_COMMANDS_MAX;
    return underWay < UNDER_WAY_MAX && last !== null && last.isDecided && waiting >= last.size;
  }

  #writeNext(lane: Lane): void {
    const batch = this.#take(lane);
    if (batch.length > 0) this.#writeBatch(lane, batch);
  }

  #writeBatch(lane: Lane, batch: readonly Waiting[]): void {
    if (lane.underWay === 0) this.#writing += 1;
    lane.underWay += 1;
    lane.commands += batch.length;
    const last: Batch = { size: batch.length, isDecided: false };
    lane.last = last;
    const started = performance.now();
    const done = (results: readonly (Outcome | StoreFault | null)[], fault: StoreFault | null) => {
      this.counts.batches += 1;
      const ended = performance.now();
      const seconds = (ended - started) / 1_000;
      this.counts.seconds += seconds;
      this.counts.times.add(seconds);
      this.counts.sizes.add(batch.length);
      if (this.#queued >= PACE_QUEUED_MIN) this.pace.note(batch.length, ended);
      else this.pace.forget();
      lane.underWay -= 1;
      lane.commands -= batch.length;
      if (lane.underWay === 0) this.#writing -= 1;
      this.#notice(fault);
      const traced = { startedMs: started, endedMs: ended, commands: batch.length, fault: fault?.code ?? null };
      this.#finishBatch(lane, batch, results, traced);
    };
    const onDecided = () => {
      last.isDecided = true;
      if (this.#isReady(lane)) this.#writeNext(lane);
    };
    const commands = batch.map(({ command }) => command);
    this.#store.write(commands, onDecided).then(
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
    if (fault !== null) {
      this.counts.faults += 1;
      this.counts.faultsByKind[fault.code] += 1;
    }
    if (fault?.code !== this.#trouble?.code) this.#onHealth(fault);
    this.#trouble = fault;
  }

  /** Requests come first: renewals have all the time that nobody asks for. Of requests, those that somebody waits for. */
  #take(lane: Lane): Waiting[] {
    const { requests, renewals } = lane;
    const batch: Waiting[] = [];
    while (batch.length < BATCH_COMMANDS_MAX && requests.length > 0)
      for (const waiting of this.#leave(requests.take(BATCH_COMMANDS_MAX - batch.length))) {
        if (waiting.requester?.isDisconnected) this.#finish(waiting, CANCELED);
        else batch.push(waiting);
      }
    lane.renewalsMax =
      batch.length > 0
        ? RENEWALS_BESIDE_REQUESTS_MAX
        : Math.min(RENEWALS_GROWTH * lane.renewalsMax, BATCH_COMMANDS_MAX);
    batch.push(...this.#leave(renewals.splice(0, Math.min(lane.renewalsMax, BATCH_COMMANDS_MAX - batch.length))));
    return batch;
  }

  #leave(taken: Waiting[]): Waiting[] {
    this.#queued -= taken.length;
    for (const { share } of taken) share.commands -= 1;
    return taken;
  }

  /** The next batch is sent off before this one is answered, so that the store never waits for the answers to be written. */
  #finishBatch(
    lane: Lane,
    batch: readonly Waiting[],
    results: readonly (Outcome | StoreFault | null)[],
    traced: TracedBatch,
  ): void {
    assert(results.length === batch.length, 'the store answers every command');
    batch.forEach((waiting, index) => {
      if (results[index] === null) this.#enqueue(lane, waiting);
    });
    this.#writeBatches();
    this.onAnswering?.(traced);
    batch.forEach((waiting, index) => {
      const result = results[index] as Outcome | StoreFault | null;
      if (result !== null) this.#finish(waiting, result);
    });
    this.onAnswering?.(null);
    this.#tellIfEmpty();
  }

  #tellIfEmpty(): void {
    if (this.#queued === 0 && this.#writing === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  #finish({ command, answer, share }: Waiting, result: Outcome | StoreFault): void {
    const bytes = bytesOf(command);
    this.#bytes -= bytes;
    share.bytes -= bytes;
    if (share.bytes === 0) this.#shares.delete(share.account);
    if (!(result instanceof StoreFault)) {
      this.counts.commands += 1;
      if (result.refused !== null) this.counts.refusals += 1;
    }
    answer(result);
  }
}

function bytesOf(command: Command): number {
  const characters = command.kind === 'renew' ? 0 : command.actor.length + (command.note?.length ?? 0);
  return COMMAND_BYTES + CHARACTER_BYTES * (command.endUser.length + characters);
}
