// Assembles the service: the store, group commit, the background jobs, the HTTP server and the console.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DestinationStream, type Logger, pino } from 'pino';
import { GroupCommit } from './batching/group-commit.ts';
import { importJob } from './batching/import-job.ts';
import type { IntervalJob } from './batching/interval-job.ts';
import { PacedJob } from './batching/paced-job.ts';
import { QuietPauses } from './batching/quiet-pauses.ts';
import { RenewalJob } from './batching/renewal-job.ts';
import { sweepJob } from './batching/sweep-job.ts';
import { type Config, originAt } from './config.ts';
import { eventJob } from './events/event-job.ts';
import type { WebhookJob } from './events/webhooks/webhook-job.ts';
import { PageQueue } from './http/admission/page-queue.ts';
import { queuedReads } from './http/admission/queued-reads.ts';
import { Authenticator } from './http/auth/authenticator.ts';
import type { ServerLimits } from './http/limits.ts';
import type { HttpServer } from './http/server.ts';
import { openStores, SharedAccountDatabase } from './open-store.ts';
import { addressRulesOf, openWebhookSecrets, startWebhooks } from './open-webhooks.ts';
import type { StoreFault } from './store/store-fault.ts';
import type { Stores } from './store/stores.ts';
import { Tracer } from './tracing/tracer.ts';
import { VERSION } from './version.ts';

export interface Service {
  readonly url: string;
  /** The URL of the metrics if they are served on their own port; otherwise null. */
  readonly metricsUrl: string | null;
  readonly stores: Stores;
  /** All routes, each in the form `GET /healthz`. */
  readonly routes: readonly string[];
  /** Stops accepting connections, answers the requests in flight, and closes the ledger. */
  stop(): Promise<void>;
}

interface ServiceOptions {
  /** Destination of log lines; standard error if absent. */
  readonly log?: DestinationStream;
  /** Returns the time in milliseconds since 1970, instead of the machine's clock; for tests, on SQLite only. */
  readonly wall?: () => number;
  /** Values that replace some of `SERVER_LIMITS`; for tests. */
  readonly limits?: Partial<ServerLimits>;
}

/** While log lines cannot be written, at most this many bytes are kept, and later lines are dropped. */
const LOG_BYTES_MAX = 1_048_576;

/**
 * A destination that survives errors, such as a full disk. By default, pino ends the process after such an error, but
 * first tries forever to write the remaining lines.
 */
function standardError(): DestinationStream {
  const destination = pino.destination({ dest: 2, maxLength: LOG_BYTES_MAX });
  const flush = destination.flushSync;
  destination.on('error', () => {
    destination.flushSync = () => {};
  });
  destination.on('write', () => {
    destination.flushSync = flush;
  });
  return destination;
}

/** @throws CannotOpen, or the error from `listen`, for example if the address is in use */
export async function startService(
  config: Config,
  { log = standardError(), wall, limits = {} }: ServiceOptions = {},
): Promise<Service> {
  const logger = pino({ level: config.logLevel }, log);
  // The store starts its writer thread while the other modules load.
  const [stores, { buildServer }, { createConsole }] = await Promise.all([
    openStores(config.database, config.testClock, wall),
    import('./http/server.ts'),
    import('./console/console.ts'),
  ]);
  const { ledger, keys, events, testClock } = stores;
  const commit = new GroupCommit(ledger, (fault) => logStoreHealth(logger, fault));
  const failing = (what: string) => warning(logger, what);
  const renewalJob = new RenewalJob(ledger, commit, failing('storing due renewals'));
  const accounts = new SharedAccountDatabase(config.database);
  let webhooks: WebhookJob | null = null;
  const deriving = eventJob(events, () => webhooks?.nudge(), failing('deriving events and summaries'));
  const jobs = [renewalJob, deriving, ...furtherJobs(stores, config, failing)];
  const authenticator = new Authenticator(keys);
  const tracer = tracerOf(config, commit, logger);
  let url = '';
  const pages = new PageQueue();
  const webConsole = createConsole({
    ...consoleOptions(config, accounts, logger),
    stores: { ...stores, ...queuedReads(stores, pages) },
    commit,
    now: wall ?? Date.now,
    listeningUrl: () => url,
  });
  let listening: HttpServer | null = null;
  let metrics: Server | null = null;
  const close = async () => {
    await listening?.drain();
    await Promise.all([...jobs, webhooks].map((job) => job?.stop()));
    await commit.drained();
    await webConsole.close();
    await Promise.all([accounts.close(), authenticator.stop()]);
    await ledger.close();
    metrics?.closeAllConnections();
    metrics?.close();
    await tracer?.stop();
  };
  try {
    const server = await buildServer({
      ledger,
      testClock,
      events,
      commit,
      renewalJob,
      authenticator,
      logger,
      version: VERSION,
      publicUrl: config.console.publicUrl,
      logRequests: config.logRequests,
      tracer,
      metricsElsewhere: config.metricsPort !== null,
      deriving,
      webhooks: () => webhooks,
      rateLimit: config.rateLimit,
      limits: { connectionsMax: config.maxConnections, ...limits },
      console: webConsole,
      pages,
    });
    await server.app.listen({ host: config.host, port: config.port, listenTextResolver: () => 'Scrip is listening' });
    listening = server;
    metrics = await startMetricsServer(config, server, logger);
    url = urlOf(server.app.server);
    webhooks = await startWebhooks(config, accounts, events, logger);
    startJobs(jobs, stores, commit);
    authenticator.start();
    let stopping: Promise<void> | null = null;
    const stop = () => (stopping ??= close().then(() => logger.info('Scrip stopped')));
    const metricsUrl = metrics && `${urlOf(metrics)}/metrics`;
    return { url, metricsUrl, stores, routes: server.routes, stop };
  } catch (error) {
    await close();
    throw error;
  }
}

function consoleOptions(config: Config, accounts: SharedAccountDatabase, logger: Logger) {
  return {
    settings: config.console,
    openDatabase: () => accounts.open(),
    webhooks: { openSecrets: () => openWebhookSecrets(config), rules: addressRulesOf(config) },
    logger,
  };
}

function furtherJobs(
  { ledger, imports, events: eventLog }: Stores,
  { idempotency, events }: Config,
  failing: (what: string) => (error: unknown) => void,
): readonly IntervalJob[] {
  const jobs = [
    sweepJob(() => ledger.deleteExpiredRecords(idempotency), failing('deleting expired idempotency records')),
    new PacedJob(() => ledger.updateTotals(), failing("updating the console's totals")),
    sweepJob(() => eventLog.deleteExpired(events.retentionMs), failing('deleting old events')),
  ];
  if (imports) jobs.push(importJob(imports, failing('granting the credits of an import')));
  return jobs;
}

function startJobs(jobs: readonly Pick<IntervalJob, 'start'>[], { ledger }: Stores, { counts }: GroupCommit): void {
  const pauses = new QuietPauses(ledger.quietPauseMs, () => counts.batches);
  for (const job of jobs) job.start(pauses);
}

function warning(logger: Logger, what: string): (error: unknown) => void {
  return (error) => logger.warn({ err: error }, `${what} failed; Scrip will try again`);
}

function logStoreHealth(logger: Logger, fault: StoreFault | null): void {
  if (fault === null) logger.info('writes are succeeding again');
  else if (fault.code !== 'Internal') logger.error({ err: fault, fault: fault.code }, 'writes are failing');
  else logger.fatal({ err: fault }, 'invariant violation: writing has stopped; run `scrip verify` for details');
}

function urlOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return originAt(address, port);
}

/** Starts the metrics server. Returns null if metrics are served on the port of the service. */
async function startMetricsServer(
  { host, metricsPort = null }: Config,
  { metrics }: HttpServer,
  logger: Logger,
): Promise<Server | null> {
  if (metricsPort === null) return null;
  const { serveMetrics } = await import('./http/metrics/metrics-server.ts');
  const server = await serveMetrics(metrics, host, metricsPort);
  logger.info({ port: (server.address() as AddressInfo).port }, 'metrics server is listening');
  return server;
}

/** Returns null if tracing is off; requests then have no tracing overhead. */
function tracerOf({ tracing = null }: Config, commit: GroupCommit, logger: Logger): Tracer | null {
  if (tracing === null) return null;
  const resource = { ...tracing.resource, 'service.version': VERSION, 'process.pid': process.pid };
  const tracer = new Tracer({ ...tracing, resource }, (reason) => logger.warn({ reason }, 'cannot send traces'));
  commit.onAnswering = (batch) => tracer.answering(batch);
  return tracer;
}
