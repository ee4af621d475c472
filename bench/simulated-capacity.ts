// Simulates group commit on a PostgreSQL server that is larger and farther away than the one in the benchmarks. Time is
// virtual, so the simulated server can have more processors than the machine that runs the simulation.
//
//   client ──▶ Scrip's processor ──▶ group commit ──▶ network ──▶ lock and load ──▶ network ──▶ decide
//     client ◀── Scrip's processor ◀── network ◀── flush of the log ◀── write ◀── network ◀──┘
//
//   npm run capacity

import { type CommitResult, GroupCommit } from '../src/batching/group-commit.ts';
import type { Command, Outcome } from '../src/ledger/command.ts';
import type { Lanes, LedgerStore } from '../src/store/ledger-store.ts';
import { Chance } from '../test/simulation/chance.ts';
import { VirtualTime } from '../test/simulation/virtual-time.ts';
import { asMarkdown } from './tables.ts';

interface Setup {
  readonly what: string;
  readonly processes: number;
  readonly lanes: number;
  /** Processor cores of the database server. */
  readonly cores: number;
  readonly roundTripMs: number;
  /** Includes the wait for a synchronous standby, if there is one. */
  readonly flushMs: number;
  /** The number of clients per process. */
  readonly clients: number;
}

/** CPU times, computed from the figures in "A subtraction on PostgreSQL" in docs/internals/performance.md. */
const RECEIVE_MS = 0.018;
const DECIDE_MS = 0.0047;
const ANSWER_MS = 0.018;
const LOAD_BATCH_MS = 0.11;
const LOAD_COMMAND_MS = 0.0153;
const WRITE_BATCH_MS = 0.37;
const WRITE_COMMAND_MS = 0.015;

const END_USERS = 100_000_000;
const WARM_UP_MS = 300;
const MEASURED_MS = 700;
/** Latencies are measured at this share of the maximum throughput. */
const MODERATE = 0.7;

const HERE = { cores: 2, roundTripMs: 0.1, flushMs: 0.4 };
const ZONE = { cores: 16, roundTripMs: 0.5, flushMs: 1 };
const ZONES = { cores: 64, roundTripMs: 1, flushMs: 3 };
const REGIONS = { cores: 64, roundTripMs: 1, flushMs: 30 };

const SETUPS: readonly Setup[] = [
  { what: 'the benchmark machine', processes: 1, lanes: 1, clients: 64, ...HERE },
  ...[1, 2, 4].map((lanes) => ({ what: 'one zone', processes: 1, lanes, clients: 256, ...ZONE })),
  ...[1, 2, 4].map((lanes) => ({ what: 'one zone', processes: 4, lanes, clients: 256, ...ZONE })),
  ...[1, 4].map((lanes) => ({ what: 'standby in another zone', processes: 8, lanes, clients: 1_024, ...ZONES })),
  ...[1, 4].map((lanes) => ({ what: 'standby in another zone', processes: 32, lanes, clients: 1_024, ...ZONES })),
  ...[1, 4].map((lanes) => ({ what: 'standby in another region', processes: 32, lanes, clients: 1_024, ...REGIONS })),
];

interface Measured {
  readonly rate: number;
  readonly commandsPerBatch: number;
  readonly busyCores: number;
  readonly p50: number;
  readonly p99: number;
}

class Cores {
  busyMs = 0;
  readonly #time: VirtualTime;
  readonly #freeAt: number[];

  constructor(time: VirtualTime, count: number) {
    this.#time = time;
    this.#freeAt = Array.from({ length: count }, () => 0);
  }

  use(ms: number): Promise<void> {
    const first = this.#freeAt.indexOf(Math.min(...this.#freeAt));
    const endsAt = Math.max(this.#time.now, this.#freeAt[first] as number) + ms;
    this.#freeAt[first] = endsAt;
    this.busyMs += ms;
    return this.#time.sleep(endsAt - this.#time.now);
  }
}

/** Transactions that arrive during a flush share the next flush. */
class Log {
  readonly #flush: () => Promise<void>;
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  flushed(): Promise<void> {
    this.#next ??= this.#current.then(() => {
      this.#current = this.#next as Promise<void>;
      this.#next = null;
      return this.#flush();
    });
    return this.#next;
  }
}

class Server {
  batches = 0;
  commands = 0;
  readonly cores: Cores;
  readonly log: Log;

  constructor(time: VirtualTime, setup: Setup) {
    this.cores = new Cores(time, setup.cores);
    this.log = new Log(() => time.sleep(setup.flushMs));
  }
}

class DistantStore implements Pick<LedgerStore, 'lanes' | 'write'> {
  readonly lanes: Lanes;
  readonly #time: VirtualTime;
  readonly #setup: Setup;
  readonly #server: Server;
  readonly #processor: Cores;
  readonly #previous: Promise<void>[];

  constructor(time: VirtualTime, setup: Setup, server: Server, processor: Cores) {
    this.#time = time;
    this.#setup = setup;
    this.#server = server;
    this.#processor = processor;
    this.lanes = { count: setup.lanes, atOnce: setup.lanes, of: ({ endUser }) => Number(endUser) % setup.lanes };
    this.#previous = Array.from({ length: setup.lanes }, () => Promise.resolve());
  }

  async write(commands: readonly Command[], onDecided: () => void): Promise<Outcome[]> {
    const { cores, log } = this.#server;
    const size = commands.length;
    const lane = this.lanes.of(commands[0] as Command);
    const previous = this.#previous[lane];
    const { promise: committed, resolve: commit } = Promise.withResolvers<void>();
    this.#previous[lane] = committed;
    await this.#travel();
    await previous;
    await cores.use(LOAD_BATCH_MS + size * LOAD_COMMAND_MS);
    await this.#travel();
    await this.#processor.use(size * DECIDE_MS);
    onDecided();
    await this.#travel();
    await cores.use(WRITE_BATCH_MS + size * WRITE_COMMAND_MS);
    await log.flushed();
    commit();
    await this.#travel();
    this.#server.batches += 1;
    this.#server.commands += size;
    return commands.map(() => ({ refused: null, transactionId: null }));
  }

  #travel(): Promise<void> {
    return this.#time.sleep(this.#setup.roundTripMs / 2);
  }
}

/** @param rate requests per second; null for a closed loop */
async function simulate(setup: Setup, rate: number | null): Promise<Measured> {
  const chance = new Chance(1);
  const time = new VirtualTime(() => chance.share());
  const restore = time.takeOver(() => time.now);
  const server = new Server(time, setup);
  const latencies: number[] = [];
  const endMs = WARM_UP_MS + MEASURED_MS;
  let measuredFrom = { batches: 0, commands: 0, busyMs: 0 };
  time.after(WARM_UP_MS, () => {
    measuredFrom = { batches: server.batches, commands: server.commands, busyMs: server.cores.busyMs };
  });
  for (let index = 0; index < setup.processes; index++) {
    const processor = new Cores(time, 1);
    const store = new DistantStore(time, setup, server, processor);
    const commit = new GroupCommit(store as Pick<LedgerStore, 'lanes' | 'write'> as LedgerStore);
    const request = async () => {
      const sentAt = time.now;
      await processor.use(RECEIVE_MS);
      await new Promise<CommitResult>((resolve) => commit.submit(subtraction(chance), resolve));
      await processor.use(ANSWER_MS);
      if (sentAt >= WARM_UP_MS) latencies.push(time.now - sentAt);
    };
    if (rate === null) for (let client = 0; client < setup.clients; client++) time.soon(() => repeat(request));
    else time.soon(() => arrive(request, () => time.sleep(chance.delay((1_000 * setup.processes) / rate))));
  }
  await time.passUntil(() => time.now >= endMs);
  restore();
  latencies.sort((a, b) => a - b);
  const commands = server.commands - measuredFrom.commands;
  return {
    rate: (1_000 * commands) / MEASURED_MS,
    commandsPerBatch: commands / (server.batches - measuredFrom.batches),
    busyCores: (server.cores.busyMs - measuredFrom.busyMs) / MEASURED_MS,
    p50: latencies[Math.floor(0.5 * latencies.length)] ?? Number.NaN,
    p99: latencies[Math.floor(0.99 * latencies.length)] ?? Number.NaN,
  };
}

async function repeat(request: () => Promise<void>): Promise<never> {
  for (;;) await request();
}

async function arrive(request: () => Promise<void>, pause: () => Promise<void>): Promise<never> {
  for (;;) {
    await pause();
    request();
  }
}

function subtraction(chance: Chance): Command {
  const endUser = String(chance.between(0, END_USERS - 1));
  return { kind: 'subtract', account: 1, endUser, amount: 1, actor: 'key:1' };
}

const lines: string[][] = [];
for (const setup of SETUPS) {
  const most = await simulate(setup, null);
  const moderate = await simulate(setup, MODERATE * most.rate);
  lines.push([
    `${setup.what}: ${setup.cores} processors, ${setup.roundTripMs} ms, ${setup.flushMs} ms`,
    String(setup.processes),
    String(setup.lanes),
    Math.round(most.rate).toLocaleString('en'),
    most.commandsPerBatch.toFixed(0),
    most.busyCores.toFixed(1),
    moderate.p50.toFixed(1),
    moderate.p99.toFixed(1),
  ]);
}
const head = [
  'server: processors, round trip, flush',
  'processes',
  'lanes',
  'subtractions/s',
  'per batch',
  'busy processors',
];
const title = 'Simulated capacity';
process.stdout.write(`${asMarkdown({ title, head: [...head, 'p50 ms at 70%', 'p99 ms at 70%'], lines })}\n`);
