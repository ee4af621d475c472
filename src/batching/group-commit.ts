// Group commit: while a batch is being written, new commands wait, and together they form the next batch. A batch needs
// only one fsync. All writes except imports go through group commit.
//
//   submit ──▶ queued ──▶ in a batch ──▶ durable ──▶ answered
//                             └── too many due events or postings for one batch: queued again
//
// A lane writes its batches in order. The store defines the number of lanes, and how many of them can write at the same
// time. All commands of an end user go through the same lane.

import assert from 'node:assert/strict';
import type { Accepted, Command, Outcome, WriteCommand } from '../ledger/command.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { StoreFault } from '../store/store-fault.ts';
import type { TracedBatch } from '../tracing/tracer.ts';
import { FairQueue } from './fair-queue.ts';
import { LOAD } from './load.ts';
import { ThroughputEstimate } from './throughput-estimate.ts';

/** The client disconnected before its command was executed, so the command changed nothing. */
export class Canceled extends Error {
  override readonly name = 'Canceled';
  readonly code = 'Canceled';
}

export const CANCELED = new Canceled('the client has disconnected');

export type CommitResult = Outcome | StoreFault | Canceled;

export type ResultCallback = (result: CommitResult) => void;

export interface Requester {
  /** Whether the client has disconnected, or the job has stopped. If so, its queued commands are canceled. */
  readonly isDisconnected: boolean;
}

/** Larger batches would hardly lower the fsync cost per command, but clients would wait longer. */
export const BATCH_COMMANDS_MAX = 512;

/**
 * Throughput is measured only while at least this many commands are queued. If fewer are queued, the clients, and not
 * the store, limit the throughput.
 */
const ESTIMATED_QUEUE_MIN = BATCH_COMMANDS_MAX;

/** Maximum number of `settle` commands in a batch with requests. Together, they take less than a millisecond. */
const SETTLED_BESIDE_REQUESTS_MAX = 24;
/**
 * While there are no requests, the maximum number of `settle` commands in a batch grows by this factor from batch to
 * batch. The growth is gradual, because a new request must wait for the current batch.
 */
const SETTLED_GROWTH = 2;

/** Maximum number of batches in flight per lane. A third batch would only wait for the second. */
const BATCHES_PER_LANE_MAX = 2;

/** Half of the requests of a lane are at least this many, because smaller batches would take noticeably more CPU time. */
const HALF_MIN = 16;
/** After each batch, the recent peak of a lane falls by 2%, unless the lane reaches it again. */
const PEAK_DECAY = 0.98;

interface Entry {
  readonly command: Command;
  readonly answer: ResultCallback;
  readonly requester: Requester | null;
}

interface Batch {
  /** The requests, followed by the `settle` commands. */
  readonly entries: readonly Entry[];
  readonly requests: number;
  readonly startedMs: number;
  isDecided: boolean;
}

interface Lane {
  readonly requests: FairQueue<Entry>;
  readonly settlements: Entry[];
  settledMax: number;
  readonly inFlight: Set<Batch>;
  /** The highest recent number of requests that were queued or in flight at the same time. */
  peak: number;
  last: Batch | null;
}

export class GroupCommit {
  readonly counts = {
    batches: 0,
    commands: 0,
    refusals: 0,
    faults: 0,
    faultsByKind: { StoreUnavailable: 0, OutcomeUnknown: 0, Internal: 0 },
  };
  readonly throughput = new ThroughputEstimate();
  /** Called with the size of each batch, and with the time from its start until it was stored or failed. */
  onBatch: ((commands: number, seconds: number) => void) | null = null;
  /** Called with each accepted write, except replays and `settle` commands. */
  onAccepted: ((command: WriteCommand, accepted: Accepted) => void) | null = null;
  /** Called with each finished batch before its commands are answered, and with null afterwards. */
  onAnswering: ((batch: TracedBatch | null) => void) | null = null;
  readonly #store: LedgerStore;
  readonly #onHealth: (trouble: StoreFault | null) => void;
  readonly #lanes: readonly Lane[];
  #firstLane = 0;
  #queued = 0;
  #writing = 0;
  #isScheduled = false;
  #trouble: StoreFault | null = null;
  readonly #whenEmpty: (() => void)[] = [];

  /**
   * @param onHealth called with the fault when a batch fails, and with null when a batch succeeds after a fault. Not
   * called for a fault that concerns only some end users, or if the previous batch failed with the same code.
   */
  constructor(store: LedgerStore, onHealth: (trouble: StoreFault | null) => void = () => {}) {
    this.#store = store;
    this.#onHealth = onHealth;
    this.#lanes = Array.from({ length: store.lanes.count }, () => ({
      requests: new FairQueue<Entry>(),
      settlements: [],
      settledMax: SETTLED_BESIDE_REQUESTS_MAX,
      inFlight: new Set(),
      peak: 0,
      last: null,
    }));
  }

  get queued(): number {
    return this.#queued;
  }

  /**
   * Calls `answer` exactly once: with the outcome when the command is durable or refused, or with an error.
   *
   * @param requester null if the command must be executed even if the client disconnects
   */
  submit(command: Command, answer: ResultCallback, requester: Requester | null = null): void {
    const lane = this.#lanes[this.#store.lanes.of(command)] as Lane;
    this.#enqueue(lane, { command, answer, requester });
    if (!this.#isReady(lane)) return;
    if (lane.requests.length >= requestsMaxOf(lane)) this.#writeNext(lane);
    else this.#writeAfterTurn();
  }

  /** Resolves when every submitted command has been answered. */
  async drained(): Promise<void> {
    if (this.queued === 0 && this.#writing === 0) return;
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /**
   * Begins the next batches after the current turn of the event loop, so that all requests that arrive in this turn can
   * share a batch.
   */
  #writeAfterTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#writeBatches();
      // If all queued commands were canceled, no batch starts, so resolve `drained` here.
      this.#resolveIfEmpty();
    });
  }

  #writeBatches(): void {
    const { length } = this.#lanes;
    for (let step = 0; step < length; step++) {
      const lane = this.#lanes[(this.#firstLane + step) % length] as Lane;
      if (this.#isReady(lane)) this.#writeNext(lane);
    }
    this.#firstLane = (this.#firstLane + 1) % length;
  }

  /**
   * Whether the lane can begin its next batch now. Until the previous batch has ended, the next batch must be at least as
   * large as the previous one, because a small batch would delay the requests after it; see
   * docs/decisions/0013-lanes.md. If the previous batch has failed, while the outcome of the batch before it is still
   * unknown, the next batch does not wait: requests should fail immediately while the store is unavailable.
   */
  #isReady({ requests, settlements, inFlight, last }: Lane): boolean {
    const queued = requests.length + settlements.length;
    if (queued === 0) return false;
    if (inFlight.size === 0) return this.#writing < this.#store.lanes.atOnce;
    if (inFlight.size >= BATCHES_PER_LANE_MAX || last === null) return false;
    return !inFlight.has(last) || (last.isDecided && queued >= last.entries.length);
  }

  #writeNext(lane: Lane): void {
    lane.peak = Math.max(waitingIn(lane), lane.peak);
    const entries = this.#take(lane);
    if (entries.length === 0) return;
    const requests = entries.filter(({ command }) => command.kind !== 'settle').length;
    const batch: Batch = { entries, requests, startedMs: performance.now(), isDecided: false };
    if (lane.inFlight.size === 0) this.#writing += 1;
    lane.inFlight.add(batch);
    lane.last = batch;
    const onDecided = () => {
      batch.isDecided = true;
      if (this.#isReady(lane)) this.#writeNext(lane);
    };
    const commands = entries.map(({ command }) => command);
    this.#store.write(commands, onDecided).then(
      (outcomes) => this.#finish(lane, batch, outcomes),
      (error) => this.#finish(lane, batch, faultOf(error)),
    );
  }

  /** Begins the next batch before answering the commands of this one, so that the store is not idle in the meantime. */
  #finish(lane: Lane, batch: Batch, results: readonly (Outcome | null)[] | StoreFault): void {
    const { entries, startedMs } = batch;
    const fault = results instanceof StoreFault ? results : null;
    const endedMs = performance.now();
    LOAD.noteWaiting(waitingIn(lane), endedMs);
    this.#count(entries.length, (endedMs - startedMs) / 1_000, fault);
    if (this.queued >= ESTIMATED_QUEUE_MIN) this.throughput.note(entries.length, endedMs);
    else this.throughput.forget();
    lane.inFlight.delete(batch);
    lane.peak *= PEAK_DECAY;
    if (lane.inFlight.size === 0) this.#writing -= 1;
    const answers = results instanceof StoreFault ? entries.map(() => results) : results;
    assert(answers.length === entries.length, 'every command has an outcome');
    for (const [index, entry] of entries.entries()) {
      if (answers[index] === null) this.#enqueue(lane, entry);
    }
    this.#writeBatches();
    this.onAnswering?.({ startedMs, endedMs, commands: entries.length, fault: fault?.code ?? null });
    for (const [index, entry] of entries.entries()) {
      const answer = answers[index] as CommitResult | null;
      if (answer !== null) this.#answer(entry, answer);
    }
    this.onAnswering?.(null);
    this.#resolveIfEmpty();
  }

  #count(size: number, seconds: number, fault: StoreFault | null): void {
    this.counts.batches += 1;
    this.onBatch?.(size, seconds);
    if (fault !== null) {
      this.counts.faults += 1;
      this.counts.faultsByKind[fault.code] += 1;
    }
    // A partial fault concerns only some end users, and batches of other end users succeed. If partial faults were
    // reported, `onHealth` would be called alternately with the fault and with null.
    if (fault?.isPartial) return;
    if (fault?.code !== this.#trouble?.code) this.#onHealth(fault);
    this.#trouble = fault;
  }

  #enqueue({ requests, settlements }: Lane, entry: Entry): void {
    const { command } = entry;
    if (command.kind === 'settle') settlements.push(entry);
    else requests.push(command.account, entry);
    this.#queued += 1;
  }

  #take(lane: Lane): Entry[] {
    const { requests, settlements } = lane;
    const entries: Entry[] = [];
    const take = (entry: Entry) => {
      this.#queued -= 1;
      if (entry.requester?.isDisconnected) this.#answer(entry, CANCELED);
      else entries.push(entry);
    };
    // Leave room for some `settle` commands: otherwise, they would wait for as long as the batches are full.
    const reserved = Math.min(settlements.length, SETTLED_BESIDE_REQUESTS_MAX);
    const requestsMax = Math.min(requestsMaxOf(lane), BATCH_COMMANDS_MAX - reserved);
    while (entries.length < requestsMax && requests.length > 0) take(requests.take() as Entry);
    lane.settledMax =
      entries.length > 0 ? SETTLED_BESIDE_REQUESTS_MAX : Math.min(SETTLED_GROWTH * lane.settledMax, BATCH_COMMANDS_MAX);
    const max = Math.min(entries.length + lane.settledMax, BATCH_COMMANDS_MAX);
    while (entries.length < max && settlements.length > 0) take(settlements.shift() as Entry);
    return entries;
  }

  #answer({ command, answer }: Entry, result: CommitResult): void {
    if (!(result instanceof Error)) {
      this.counts.commands += 1;
      if (result.refused !== null) this.counts.refusals += 1;
      else if (result.replayOf === undefined && command.kind !== 'settle') this.onAccepted?.(command, result);
    }
    answer(result);
  }

  #resolveIfEmpty(): void {
    if (this.queued === 0 && this.#writing === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

/** The number of requests that are queued or in flight. */
function waitingIn({ requests, inFlight }: Lane): number {
  let waiting = requests.length;
  for (const batch of inFlight) waiting += batch.requests;
  return waiting;
}

/**
 * The maximum number of requests in the next batch. If batches of the lane can overlap, this is half of the lane's
 * recent peak: while the store writes one half of the requests, the process answers the other half and receives new
 * requests. If all requests were in the same batch, the store and the process would wait for each other in turn.
 */
function requestsMaxOf({ last, peak }: Lane): number {
  if (!last?.isDecided) return BATCH_COMMANDS_MAX;
  return Math.min(Math.max(Math.ceil(peak / 2), HALF_MIN), BATCH_COMMANDS_MAX);
}

function faultOf(error: unknown): StoreFault {
  return error instanceof StoreFault ? error : new StoreFault('Internal', String(error));
}
