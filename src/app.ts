// The service, put together: the only place that chooses a store.

import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { type DestinationStream, type Logger, pino } from 'pino';
import { apiKeySecret, type Scope, SECRET_BYTES } from './accounts/api-key.ts';
import { AnswerSweep } from './commit/answer-sweep.ts';
import { GroupCommit, QUEUE_LIMITS } from './commit/group-commit.ts';
import { RenewalClock } from './commit/renewal-clock.ts';
import type { Config, Database } from './config.ts';
import { Authenticator } from './http/authenticate.ts';
import { buildServer } from './http/server.ts';
import { type CopyProgress, type CopyReport, copyLedger } from './store/copy.ts';
import type { CopyDestination, CopySource } from './store/ledger-copy.ts';
import { openPostgresDestination, openPostgresSource } from './store/postgres/copying.ts';
import { openPostgresStore, openPostgresStoreBeside } from './store/postgres/postgres-store.ts';
import { openSqliteDestination, openSqliteSource } from './store/sqlite/copying.ts';
import type { WallClock } from './store/sqlite/ledger-clock.ts';
import { openSqliteStore, openSqliteStoreBeside } from './store/sqlite/sqlite-store.ts';
import type { Store, StoreFault } from './store/store.ts';

export const VERSION = '0.1.0';

export interface Service {
  readonly url: string;
  readonly store: Store;
  /** Stops accepting, answers what is in flight, and leaves the ledger closed. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  /** Where log lines go; standard error when absent. */
  readonly log?: DestinationStream;
  /** Another clock than the machine's, for tests. */
  readonly wall?: WallClock;
}

/** @throws CannotOpen, and what `listen` throws when the address is taken */
export async function startService(
  config: Config,
  { log = pino.destination(2), wall }: ServiceOptions = {},
): Promise<Service> {
  const logger = pino({ level: config.logLevel }, log);
  const store = await openStore(config.database, wall);
  const commit = new GroupCommit(store, QUEUE_LIMITS, (trouble) => logHealth(logger, trouble));
  const renewalClock = new RenewalClock(store, commit, (error) =>
    logger.warn({ err: error }, 'renewals wait for the next tick'),
  );
  const answerSweep = new AnswerSweep(store, config.keepAnswersMs, (error) =>
    logger.warn({ err: error }, 'old answers wait for the next tick'),
  );
  const authenticator = new Authenticator(store.apiKeys);
  try {
    const server = await buildServer({ store, commit, renewalClock, authenticator, logger, version: VERSION });
    await server.app.listen({ host: config.host, port: config.port, listenTextResolver: () => 'Scrip listens' });
    renewalClock.start();
    answerSweep.start();
    const stop = async () => {
      await server.drain();
      await Promise.all([renewalClock.stop(), answerSweep.stop()]);
      await commit.drained();
      await store.close();
      logger.info('Scrip has stopped');
    };
    return { url: urlOf(server.app.server.address() as AddressInfo), store, stop: onceOnly(stop) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Opens the store to serve from. */
async function openStore(database: Database, wall: WallClock | undefined): Promise<Store> {
  return database.kind === 'file' ? openSqliteStore(database.path, wall) : openPostgresStore(database);
}

/**
 * Opens the store beside servers that may be running on it.
 *
 * @param options whether to make a ledger where there is none, or to say so
 */
export async function openBeside(database: Database, options: { create: boolean } = { create: true }): Promise<Store> {
  if (database.kind === 'file') return openSqliteStoreBeside(database.path, options);
  return openPostgresStoreBeside(database, options);
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
  return database.kind === 'file' ? openSqliteSource(database.path) : openPostgresSource(database);
}

async function openDestination(database: Database): Promise<CopyDestination> {
  return database.kind === 'file' ? openSqliteDestination(database.path) : openPostgresDestination(database);
}

/** Makes a key, and the account when there is none of that name. The secret is in the answer and nowhere else. */
export async function createApiKey(
  store: Store,
  { accountName, scope }: { accountName: string; scope: Scope },
): Promise<string> {
  const secret = apiKeySecret(scope, randomBytes(SECRET_BYTES));
  await store.apiKeys.create({ accountName, scope, secret });
  return secret;
}

function logHealth(logger: Logger, trouble: StoreFault | null): void {
  if (trouble === null) logger.info('writes work again');
  else if (trouble.code !== 'Internal') logger.error({ err: trouble, fault: trouble.code }, 'writes fail for now');
  else
    logger.fatal({ err: trouble }, 'an invariant is broken: the ledger writes no more; see what `scrip verify` finds');
}

function urlOf({ address, port, family }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}

function onceOnly(stop: () => Promise<void>): () => Promise<void> {
  let stopping: Promise<void> | null = null;
  return () => {
    stopping ??= stop();
    return stopping;
  };
}
