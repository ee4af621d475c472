// A process of the service: the real HTTP server, group commit, renewal clock, answer sweep and authenticator above a
// simulated store. A crash takes all of it away but the server's routes, which hold nothing; building those anew takes
// longer than a whole seed, so they are built once and reach whatever process has the turn.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import { GroupCommit, type QueueLimits, type ResultCallback } from '../../src/batching/group-commit.ts';
import { idempotencySweep } from '../../src/batching/idempotency-sweep.ts';
import type { IntervalJob } from '../../src/batching/interval-job.ts';
import { RenewalJob } from '../../src/batching/renewal-job.ts';
import { Authenticator, type LatestCaller } from '../../src/http/authenticate.ts';
import { ListTurns, type PageReader } from '../../src/http/page-turns.ts';
import { buildServer, type HttpServer } from '../../src/http/server.ts';
import type { Command } from '../../src/ledger/command.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { ArrivingRequest, DepartingResponse, type OpenSocket, type Reply, type SentRequest } from './connection.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

export interface ProcessOptions {
  readonly store: Store;
  readonly limits: QueueLimits;
  readonly idempotencyMs: number;
  /** What the log would say of troubles. */
  readonly onTrouble: (what: string) => void;
}

/** What is volatile: it is gone when the process crashes. */
export class Process implements Owner {
  isAlive = true;
  store!: Store;
  commit!: GroupCommit;
  renewalJob!: RenewalJob;
  idempotencyJob!: IntervalJob;
  authenticator!: Authenticator;
  readonly listTurns = new ListTurns();
  /** What would be waited for in vain after a crash; to be called with the crash, whose answers nobody hears. */
  readonly pending = new Set<(fault: StoreFault) => void>();
  readonly #sockets = new Map<string | null, OpenSocket>();

  /** Whoever calls keeps a connection open. */
  socketOf({ authorization }: SentRequest): OpenSocket {
    const known = this.#sockets.get(authorization);
    if (known !== undefined) return known;
    const socket = new EventEmitter();
    this.#sockets.set(authorization, socket);
    return socket;
  }

  start({ store, limits, idempotencyMs, onTrouble }: ProcessOptions): void {
    this.store = store;
    this.commit = new GroupCommit(store, limits, (trouble) =>
      onTrouble(trouble === null ? 'writes work' : trouble.code),
    );
    this.renewalJob = new RenewalJob(store, this.commit, () => onTrouble('renewals wait'));
    this.idempotencyJob = idempotencySweep(store, idempotencyMs, () => onTrouble('answers wait'));
    this.authenticator = new Authenticator(store.apiKeys);
    this.renewalJob.start();
    this.idempotencyJob.start();
    this.authenticator.start();
  }

  /** As `startService` stops it. */
  async stop(): Promise<void> {
    await Promise.all([this.renewalJob.stop(), this.idempotencyJob.stop()]);
    await this.commit.drained();
    await this.authenticator.stop();
    await this.store.close();
  }
}

const CUT = new StoreFault('StoreUnavailable', 'the process is gone');

/** The place of a process, and who runs there now. */
export class Slot {
  process: Process | null = null;

  /** Ends the process between two turns. */
  crash(): void {
    assert(this.process !== null, 'a process runs here');
    const { pending } = this.process;
    this.process.isAlive = false;
    this.process = null;
    for (const cut of pending) cut(CUT);
    pending.clear();
  }
}

/**
 * The routes of all processes. With a server for each, whatever all three run through was compiled for the objects of
 * three, which have other shapes: a seed took 73 and 79 ms of processor time, rather than 70 and 71 (November 2026).
 */
export class Routes {
  /** Of the seed under way. It knows whose turn it is: what a route asks for, it asks for in the process that has the turn. */
  time: VirtualTime | null = null;
  #server!: HttpServer;
  /** Told of the command that a request leads to, while its handler runs. */
  #onSubmit: ((command: Command) => void) | null = null;

  static async build(): Promise<Routes> {
    const routes = new Routes();
    const { counts, pace } = new GroupCommit({ lanes: { count: 0 } } as Store);
    const commit = {
      counts,
      pace,
      submit: (command: Command, answer: ResultCallback) => routes.#submit(command, answer),
    };
    const store = {
      cycles: (user) => waitIn(routes.#running, ({ store }) => store.cycles(user)),
      transactions: (user, page) => waitIn(routes.#running, ({ store }) => store.transactions(user, page)),
      trouble: () => null,
    } satisfies Partial<Store> as unknown as Store;
    const turnsOf = (which: keyof ListTurns) => ({
      take: (reader: PageReader, make: () => Promise<unknown>) =>
        waitIn(routes.#running, ({ listTurns }) => listTurns[which].take(reader, make)),
    });
    const authenticator = {
      authenticate(request: IncomingMessage, latest: LatestCaller) {
        const process = routes.#running;
        const key = process.authenticator.authenticate(request, latest);
        return key instanceof Promise ? waitIn(process, () => key) : key;
      },
    } as Pick<Authenticator, 'authenticate'> as Authenticator;
    routes.#server = await buildServer({
      store,
      commit: commit as unknown as GroupCommit,
      renewalJob: { renewed: 0, due: 0, lateMs: () => 0 } as RenewalJob,
      authenticator,
      logger: SILENT,
      version: 'simulated',
      console: { plugin: async () => {}, addressFor: (url) => url },
      listTurns: { beginnings: turnsOf('beginnings'), pages: turnsOf('pages') } as unknown as ListTurns,
    });
    await routes.#server.app.ready();
    return routes;
  }

  /** @param answer called with what the server answers, or null when it breaks off; not at all when it crashes before */
  handle(sent: SentRequest, onSubmit: (command: Command) => void, answer: (reply: Reply | null) => void): void {
    const served = this.#running;
    const around = (deliver: () => void) => {
      this.#onSubmit = onSubmit;
      deliver();
      this.#onSubmit = null;
    };
    const request = new ArrivingRequest(sent, served.socketOf(sent), around);
    const response = new DepartingResponse(request, (reply) => {
      if (served.isAlive) answer(reply);
    });
    this.#server.app.routing(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  }

  /** What the server counts as being worked on. */
  async requestsInFlight(): Promise<number> {
    const text = await this.#server.metrics.getSingleMetricAsString('scrip_requests_in_flight');
    return Number(text.split(' ').at(-1));
  }

  async close(): Promise<void> {
    await this.#server.app.close();
  }

  get #running(): Process {
    const owner = this.time?.owner;
    assert(owner instanceof Process && owner.isAlive, 'a process has the turn');
    return owner;
  }

  #submit(command: Command, answer: ResultCallback): void {
    assert(this.#onSubmit !== null, 'a handler runs when its body is there');
    this.#onSubmit(command);
    const { commit, pending } = this.#running;
    const once: ResultCallback = (result) => {
      if (pending.delete(once)) answer(result);
    };
    pending.add(once);
    commit.submit(command, once);
  }
}

/** What a process is asked for, unless it crashes before it has it. */
function waitIn<Value>(process: Process, ask: (process: Process) => Promise<Value>): Promise<Value> {
  const { pending } = process;
  const wanted = ask(process);
  return new Promise((resolve, reject) => {
    pending.add(reject);
    wanted.then(
      (value) => {
        pending.delete(reject);
        resolve(value);
      },
      (error) => {
        pending.delete(reject);
        reject(error);
      },
    );
  });
}

const nothing = () => {};
const SILENT = {
  level: 'silent',
  fatal: nothing,
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  silent: nothing,
  child: () => SILENT,
} as unknown as FastifyBaseLogger;
