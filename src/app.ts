// The service, put together: the only place that chooses a store. What serves, and the store that is not chosen, is loaded
// where it is needed: a command that makes a key waits for neither, and a start does not wait for PostgreSQL's driver.

import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { type DestinationStream, type Logger, pino } from 'pino';
import { apiKeySecret, type Scope, SECRET_BYTES } from './accounts/api-key.ts';
import type { Role } from './accounts/membership.ts';
import { GroupCommit, QUEUE_LIMITS } from './batching/group-commit.ts';
import { idempotencySweep } from './batching/idempotency-sweep.ts';
import { RenewalJob } from './batching/renewal-job.ts';
import type { Config, Database } from './config.ts';
import { readsInTurn } from './http/account-reads-in-turn.ts';
import { Authenticator } from './http/authenticate.ts';
import { ListTurns } from './http/page-turns.ts';
import type { HttpServer } from './http/server.ts';
import type { ServerLimits } from './http/server-limits.ts';
import { type AccountPostings, type ExportFormat, exportedText } from './store/account-export.ts';
import type { ConsoleDatabase } from './store/console-database.ts';
import { type CopyProgress, type CopyReport, copyLedger } from './store/copy.ts';
import type { CopyDestination, CopySource } from './store/ledger-copy.ts';
import { NewFile } from './store/new-file.ts';
import { openSqliteAccount } from './store/sqlite/account-postings.ts';
import { type BackupProgress, type BackupReport, backUpFile, restoreFile } from './store/sqlite/backup.ts';
import { openSqliteDestination, openSqliteSource } from './store/sqlite/copying.ts';
import type { WallClock } from './store/sqlite/ledger-clock.ts';
import { openSqliteStore, openSqliteStoreBeside } from './store/sqlite/sqlite-store.ts';
import { CannotOpen, type Store, type StoreFault } from './store/store.ts';
import { Tracer } from './tracing/tracer.ts';

export const VERSION = '0.1.0';

export interface Service {
  readonly url: string;
  /** Where the metrics are when they have a port of their own. */
  readonly metricsUrl: string | null;
  readonly store: Store;
  /** Of all that is served, as `GET /healthz`. */
  readonly routes: readonly string[];
  /** Stops accepting, answers what is in flight, and leaves the ledger closed. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  /** Where log lines go; standard error when absent. */
  readonly log?: DestinationStream;
  /** Another clock than the machine's, for tests. */
  readonly wall?: WallClock;
  /** Shorter times and fewer connections, for tests. */
  readonly limits?: Partial<ServerLimits>;
}

/** @throws CannotOpen, and what `listen` throws when the address is taken */
export async function startService(
  config: Config,
  { log = pino.destination(2), wall, limits = {} }: ServiceOptions = {},
): Promise<Service> {
  const logger = pino({ level: config.logLevel }, log);
  // The writer's thread starts meanwhile.
  const [store, { buildServer }, { createConsole }] = await Promise.all([
    openStore(config.database, wall),
    import('./http/server.ts'),
    import('./console/console.ts'),
  ]);
  const commit = new GroupCommit(store, QUEUE_LIMITS, (trouble) => logHealth(logger, trouble));
  const renewalJob = new RenewalJob(store, commit, (error) =>
    logger.warn({ err: error }, 'renewals wait for the next tick'),
  );
  const idempotencyJob = idempotencySweep(store, config.idempotencyMs, (error) =>
    logger.warn({ err: error }, 'old answers wait for the next tick'),
  );
  const authenticator = new Authenticator(store.apiKeys);
  const tracer = tracerOf(config, commit, logger);
  let url = '';
  const listTurns = new ListTurns();
  const webConsole = createConsole({
    store: {
      accountReads: readsInTurn(store.accountReads, listTurns.pages),
      apiKeys: store.apiKeys,
      cycles: (user) => store.cycles(user),
    },
    commit,
    settings: config.console,
    openDatabase: () => openConsoleDatabase(config.database),
    logger,
    now: wall ?? Date.now,
    listeningUrl: () => url,
  });
  try {
    const server = await buildServer({
      store,
      commit,
      renewalJob,
      authenticator,
      logger,
      version: VERSION,
      logRequests: config.logRequests,
      tracer,
      metricsElsewhere: config.metricsPort !== null,
      rateLimit: config.rateLimit,
      limits,
      console: webConsole,
      listTurns,
    });
    await server.app.listen({ host: config.host, port: config.port, listenTextResolver: () => 'Scrip listens' });
    const metrics = await metricsApart(config, server, logger).catch(async (error) => {
      await server.drain();
      throw error;
    });
    url = urlOf(server.app.server.address() as AddressInfo);
    renewalJob.start();
    idempotencyJob.start();
    authenticator.start();
    const stop = async () => {
      await server.drain();
      await Promise.all([renewalJob.stop(), idempotencyJob.stop()]);
      await commit.drained();
      await webConsole.close();
      await authenticator.stop();
      await store.close();
      metrics?.closeAllConnections();
      metrics?.close();
      await tracer?.stop();
      logger.info('Scrip has stopped');
    };
    const metricsUrl = metrics && `${urlOf(metrics.address() as AddressInfo)}/metrics`;
    return { url, metricsUrl, store, routes: server.routes, stop: onceOnly(stop) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Opens the store to serve from. */
async function openStore(database: Database, wall: WallClock | undefined): Promise<Store> {
  if (database.kind === 'file') {
    return openSqliteStore(database.path, wall, { isChained: database.chained ?? false });
  }
  const { openPostgresStore } = await import('./store/postgres/postgres-store.ts');
  return openPostgresStore(database);
}

/**
 * Opens the store beside servers that may be running on it.
 *
 * @param options whether to make a ledger where there is none, or to say so
 */
export async function openBeside(database: Database, options: { create: boolean } = { create: true }): Promise<Store> {
  if (database.kind === 'file') return openSqliteStoreBeside(database.path, options);
  const { openPostgresStoreBeside } = await import('./store/postgres/postgres-store.ts');
  return openPostgresStoreBeside(database, options);
}

/**
 * Connections of the console, to a ledger that is open. What it needs is loaded with it, since a service whose console
 * nobody opens should not wait for it.
 */
async function openConsoleDatabase(database: Database): Promise<ConsoleDatabase> {
  if (database.kind === 'file') {
    const { openSqliteConsoleDatabase } = await import('./store/sqlite/console-database.ts');
    return openSqliteConsoleDatabase(database.path);
  }
  const { openPostgresConsoleDatabase } = await import('./store/postgres/console-database.ts');
  return openPostgresConsoleDatabase(database.url);
}

/**
 * Makes an invitation to an account.
 *
 * @param options.onlyFirst whether an account that has a member already gets none
 * @returns the path of the link; null when there is no account of that name, or it needs no first member
 */
export async function inviteTo(
  database: Database,
  { accountName, role, onlyFirst }: { accountName: string; role: Role; onlyFirst: boolean },
): Promise<string | null> {
  const { Members } = await import('./console/identity/members.ts');
  const consoleDatabase = await openConsoleDatabase(database);
  try {
    const members = new Members(consoleDatabase, Date.now);
    const account = await members.accountNamed(accountName);
    if (account === null || (onlyFirst && (await members.hasMembers(account)))) return null;
    return `/console/join/${await members.invite(account, role)}`;
  } finally {
    await consoleDatabase.close();
  }
}

/** Sets a new random password and ends all sessions. Null when nobody has signed up with this address. */
export async function resetPassword(database: Database, email: string): Promise<string | null> {
  const { openIdentity } = await import('./console/identity/identity.ts');
  const identity = await openIdentity({
    database: await openConsoleDatabase(database),
    signUp: 'closed',
    letters: null,
    now: Date.now,
    onTrouble: () => {},
  });
  try {
    const userId = await identity.people.userIdOf(email.trim().toLowerCase());
    if (userId === null) return null;
    const password = randomBytes(SECRET_BYTES).toString('base64url');
    await identity.people.setPassword(userId, password);
    return password;
  } finally {
    await identity.close();
  }
}

/**
 * Copies the whole ledger, or goes on with it.
 *
 * @throws CopyStopped, CannotOpen
 */
export async function copyDatabase(
  from: Database,
  to: Database,
  report: (progress: CopyProgress) => void,
): Promise<CopyReport> {
  const source = await openSource(from);
  try {
    const destination = await openDestination(to);
    try {
      return await copyLedger(source, destination, report);
    } finally {
      await destination.close();
    }
  } finally {
    await source.close();
  }
}

async function openSource(database: Database): Promise<CopySource> {
  if (database.kind === 'file') return openSqliteSource(database.path);
  const { openPostgresSource } = await import('./store/postgres/copying.ts');
  return openPostgresSource(database);
}

async function openDestination(database: Database): Promise<CopyDestination> {
  if (database.kind === 'file') return openSqliteDestination(database.path);
  const { openPostgresDestination } = await import('./store/postgres/copying.ts');
  return openPostgresDestination(database);
}

/** Makes a key, and the account when there is none of that name. The secret is in the answer and nowhere else. */
export async function createApiKey(
  store: Store,
  { accountName, scope, name }: { accountName: string; scope: Scope; name?: string },
): Promise<string> {
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  await store.apiKeys.create({ accountName, scope, secret, name: name ?? '' });
  return secret;
}

function logHealth(logger: Logger, trouble: StoreFault | null): void {
  if (trouble === null) logger.info('writes work again');
  else if (trouble.code !== 'Internal') logger.error({ err: trouble, fault: trouble.code }, 'writes fail for now');
  else
    logger.fatal({ err: trouble }, 'an invariant is broken: the ledger writes no more; see what `scrip verify` finds');
}

function urlOf({ address, port }: AddressInfo): string {
  return originAt(address, port);
}

/** How this machine reaches what listens there. */
export function originAt(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

function onceOnly(stop: () => Promise<void>): () => Promise<void> {
  let stopping: Promise<void> | null = null;
  return () => {
    stopping ??= stop();
    return stopping;
  };
}

/** @throws CannotOpen, also for PostgreSQL, which has tools of its own for this */
export async function backUpDatabase(
  database: Database,
  to: string,
  report: (progress: BackupProgress) => void,
): Promise<BackupReport> {
  if (database.kind === 'file') return backUpFile(database.path, to, report);
  throw new CannotOpen(
    '`scrip backup` is for a ledger file; back up PostgreSQL with pg_dump or pg_basebackup, as docs/operating/backups.md says.',
  );
}

/** @throws CannotOpen, also for PostgreSQL */
export async function restoreDatabase(
  from: string,
  database: Database,
  report: (progress: BackupProgress) => void,
): Promise<BackupReport> {
  if (database.kind === 'file') return restoreFile(from, database.path, report);
  throw new CannotOpen(
    '`scrip restore` makes a ledger file; restore PostgreSQL with its own tools, or bring a backup there with `scrip copy`, as docs/operating/backups.md says.',
  );
}

export interface ExportOptions {
  readonly account: string;
  readonly format: ExportFormat;
  /** A new file; standard output when null. */
  readonly output: string | null;
}

/**
 * Writes all postings of an account.
 *
 * @param report called after every batch
 * @returns how many they are
 * @throws CannotOpen
 */
export async function exportAccount(
  database: Database,
  { account, format, output }: ExportOptions,
  report: (progress: { done: number; total: number }) => void,
): Promise<number> {
  const postings = await openAccount(database, account);
  let done = 0;
  const counted = async function* ({ batches, total }: AccountPostings) {
    for await (const batch of batches()) {
      yield batch;
      done += batch.length;
      report({ done, total });
    }
  };
  const text = exportedText(counted(postings), format);
  const target = output === null ? null : new NewFile(output);
  try {
    // Standard output stays open, so that what is said at the end can follow.
    await pipeline(text, target === null ? process.stdout : createWriteStream(target.partial), {
      end: target !== null,
    });
    target?.publish();
    return done;
  } finally {
    target?.discard();
    await postings.close();
  }
}

async function openAccount(database: Database, account: string): Promise<AccountPostings> {
  if (database.kind === 'file') return openSqliteAccount(database.path, account);
  const { openPostgresAccount } = await import('./store/postgres/account-postings.ts');
  return openPostgresAccount(database, account);
}

/** Null when they are on the port of the service. */
async function metricsApart(
  { host, metricsPort = null }: Config,
  { metrics }: HttpServer,
  logger: Logger,
): Promise<Server | null> {
  if (metricsPort === null) return null;
  const { serveMetrics } = await import('./http/metrics-server.ts');
  const server = await serveMetrics(metrics, { host, port: metricsPort });
  logger.info({ port: (server.address() as AddressInfo).port }, 'the metrics have a port of their own');
  return server;
}

/** Null when nobody wants traces: then a request pays nothing for them. */
function tracerOf({ tracing = null }: Config, commit: GroupCommit, logger: Logger): Tracer | null {
  if (tracing === null) return null;
  const resource = { ...tracing.resource, 'service.version': VERSION, 'process.pid': process.pid };
  const tracer = new Tracer({ ...tracing, resource }, (reason) => logger.warn({ reason }, 'traces cannot be sent'));
  commit.onAnswering = (batch) => tracer.answering(batch);
  return tracer;
}
