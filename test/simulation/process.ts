// A process of the service: the real server and background jobs on a simulated store. A crash discards everything
// except the routes, which have no state.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import { GroupCommit, type Requester, type ResultCallback } from '../../src/batching/group-commit.ts';
import { IntervalJob } from '../../src/batching/interval-job.ts';
import { RenewalJob } from '../../src/batching/renewal-job.ts';
import { sweepJob } from '../../src/batching/sweep-job.ts';
import { deriveEvents } from '../../src/events/derive.ts';
import { PageQueue } from '../../src/http/admission/page-queue.ts';
import { Authenticator, type LatestKey } from '../../src/http/auth/authenticator.ts';
import { buildServer, type HttpServer } from '../../src/http/server.ts';
import type { Command } from '../../src/ledger/command.ts';
import type { EventLog } from '../../src/store/event-log.ts';
import type { KeyStore } from '../../src/store/key-store.ts';
import type { IdempotencyRetention, LedgerStore } from '../../src/store/ledger-store.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { ArrivingRequest, DepartingResponse, type OpenSocket, type Reply, type SentRequest } from './connection.ts';
import type { SimulatedStore } from './simulated-store.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

export interface ProcessOptions {
  readonly store: SimulatedStore;
  readonly retention: IdempotencyRetention;
  readonly onTrouble: (what: string) => void;
}

export class Process implements Owner {
  isAlive = true;
  store!: LedgerStore;
  commit!: GroupCommit;
  jobs: readonly { start(): void; stop(): Promise<void> }[] = [];
  authenticator!: Authenticator;
  readonly pages = new PageQueue();
  readonly pending = new Set<(fault: StoreFault) => void>();
  readonly #sockets = new Map<string | null, OpenSocket>();

  socketOf({ authorization }: SentRequest): OpenSocket {
    const known = this.#sockets.get(authorization);
    if (known !== undefined) return known;
    const socket = new EventEmitter();
    this.#sockets.set(authorization, socket);
    return socket;
  }

  start({ store, retention, onTrouble }: ProcessOptions): void {
    this.store = store;
    const { events } = store;
    this.commit = new GroupCommit(store, (trouble) => onTrouble(trouble === null ? 'writes work' : trouble.code));
    this.jobs = [
      new RenewalJob(store, this.commit, () => onTrouble('renewals fail')),
      sweepJob(
        () => store.deleteExpiredRecords(retention),
        () => onTrouble('the sweep fails'),
      ),
      jobOf(
        () => store.updateTotals(),
        () => onTrouble('the totals fail'),
      ),
      ...(events === null
        ? []
        : [
            jobOf(
              () => events.deriveNext(deriveEvents),
              () => onTrouble('the events fail'),
            ),
          ]),
    ];
    this.authenticator = new Authenticator(store.keys as KeyStore);
    for (const job of this.jobs) job.start();
    this.authenticator.start();
  }

  /** Stops the parts in the same order as the `stop` function in `src/service.ts`. */
  async stop(): Promise<void> {
    await Promise.all(this.jobs.map((job) => job.stop()));
    await this.commit.drained();
    await this.authenticator.stop();
    await this.store.close();
  }
}

/** Like `PacedJob`, but without pauses between steps: the pauses use a timer that virtual time does not replace. */
function jobOf(step: () => Promise<boolean>, onTrouble: () => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    let isMore = true;
    while (isMore && !stopping.aborted) isMore = await step();
  }, onTrouble);
}

const CUT = new StoreFault('StoreUnavailable', 'the process has crashed');

export class Slot {
  process: Process | null = null;

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
 * All processes share one HTTP server. With a server for each process, V8 would compile the shared code for objects of
 * several different shapes. In two measurements (November 2026), a seed took 70 and 71 ms of CPU time with one server,
 * and 73 and 79 ms with a server for each process.
 */
export class Routes {
  time: VirtualTime | null = null;
  #server!: HttpServer;
  #onSubmit: ((command: Command) => void) | null = null;

  static async build(): Promise<Routes> {
    const routes = new Routes();
    const { counts, throughput } = new GroupCommit({ lanes: { count: 0 } } as LedgerStore);
    const commit = {
      counts,
      throughput,
      submit: (command: Command, answer: ResultCallback) => routes.#submit(command, answer),
    };
    const ledger = {
      load: (user) => waitIn(routes.#running, ({ store }) => store.load(user)),
      transactions: (user, page) => waitIn(routes.#running, ({ store }) => store.transactions(user, page)),
      history: (user, request) => waitIn(routes.#running, ({ store }) => store.history(user, request)),
      statesAt: (user, instants) => waitIn(routes.#running, ({ store }) => store.statesAt(user, instants)),
      trouble: () => null,
    } satisfies Partial<LedgerStore> as unknown as LedgerStore;
    const pages = {
      read: (account: number, requester: Requester, read: () => Promise<unknown>) =>
        waitIn(routes.#running, (process) => process.pages.read(account, requester, read)),
    } as PageQueue;
    const authenticator = {
      authenticate(authorization: string | undefined, latest: LatestKey) {
        const process = routes.#running;
        const key = process.authenticator.authenticate(authorization, latest);
        return key instanceof Promise ? waitIn(process, () => key) : key;
      },
    } as Pick<Authenticator, 'authenticate'> as Authenticator;
    routes.#server = await buildServer({
      ledger,
      events: {} as EventLog,
      commit: commit as unknown as GroupCommit,
      renewalJob: { settled: 0, due: 0, lateMs: () => 0 } as unknown as RenewalJob,
      deriving: { lateMs: () => 0 },
      webhooks: () => null,
      authenticator,
      logger: SILENT,
      version: 'simulated',
      console: { plugin: async () => {}, prefix: '/console/', addressFor: (url) => url },
      pages,
    });
    await routes.#server.app.ready();
    return routes;
  }

  /** @param answer not called after a crash; called with null if the server closes the connection */
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

  async requestsInFlight(): Promise<number> {
    const text = await this.#server.metrics.getSingleMetricAsString('scrip_requests_in_flight');
    return Number(text.split(' ').at(-1));
  }

  async close(): Promise<void> {
    await this.#server.app.close();
  }

  get #running(): Process {
    const owner = this.time?.owner;
    assert(owner instanceof Process && owner.isAlive, 'an event of a process is running');
    return owner;
  }

  #submit(command: Command, answer: ResultCallback): void {
    assert(this.#onSubmit !== null, 'a handler runs while the body is delivered');
    this.#onSubmit(command);
    const { commit, pending } = this.#running;
    const once: ResultCallback = (result) => {
      if (pending.delete(once)) answer(result);
    };
    pending.add(once);
    commit.submit(command, once);
  }
}

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
