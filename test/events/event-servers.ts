// Servers for the tests that kill processes: one `scrip serve` on SQLite, or three on one PostgreSQL database.

import { randomBytes } from 'node:crypto';
import { type Database, databaseOf } from '../../src/config.ts';
import { Thresholds } from '../../src/events/thresholds.ts';
import { Endpoints } from '../../src/events/webhooks/endpoints.ts';
import { SecretBox } from '../../src/events/webhooks/secrets.ts';
import { openAccountDatabase } from '../../src/open-store.ts';
import type { EventSettings } from '../../src/store/event-log.ts';
import { Running } from '../cli/scrip-command.ts';
import { newKey } from '../load/server-process.ts';
import { freePort } from '../store/postgres/postgres-server.ts';
import type { Weakness } from './weakened-events.ts';

export const ACCOUNT = 'Acme';
const ACCOUNT_NUMBER = 1;

const WEAKENED = new URL('./weakened-events.ts', import.meta.url).href;

export interface ServerOptions {
  readonly processes: number;
  readonly hasShortRetries: boolean;
  readonly weakness: Weakness | null;
}

export class EventServers {
  readonly urls: readonly string[];
  readonly database: Database;
  readonly #environment: Record<string, string>;
  readonly #webhookKey: string;
  readonly #ports: readonly number[];
  readonly #running: (Running | null)[];

  static async on(databaseUrl: string, options: ServerOptions): Promise<EventServers> {
    const ports: number[] = [];
    while (ports.length < options.processes) ports.push(await freePort());
    return new EventServers(databaseUrl, ports, options);
  }

  private constructor(
    databaseUrl: string,
    ports: readonly number[],
    { hasShortRetries, weakness }: Omit<ServerOptions, 'processes'>,
  ) {
    this.#webhookKey = randomBytes(32).toString('hex');
    this.#ports = ports;
    this.#running = ports.map(() => null);
    this.#environment = {
      DATABASE_URL: databaseUrl,
      LOG_LEVEL: 'error',
      WEBHOOK_KEY: this.#webhookKey,
      NODE_OPTIONS: `--import=${WEAKENED}`,
      ...(hasShortRetries ? { SHORT_RETRIES: 'yes' } : {}),
      ...(weakness === null ? {} : { WEAKENED_EVENTS: weakness }),
    };
    this.urls = ports.map((port) => `http://127.0.0.1:${port}`);
    this.database = databaseOf({ DATABASE_URL: databaseUrl });
  }

  async start(index: number): Promise<void> {
    await this.begin(index).says(/^Scrip is listening on (\S+)$/m);
  }

  /** Starts a server, but does not wait until it listens. */
  begin(index: number): Running {
    const PORT = String(this.#ports[index]);
    const server = new Running(['serve', '--test-clock'], { ...this.#environment, PORT });
    this.#running[index] = server;
    return server;
  }

  async kill(index: number): Promise<void> {
    const server = this.#running[index];
    server?.kill('SIGKILL');
    await server?.ended;
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#running.map((_, index) => this.kill(index)));
  }

  /** @returns what the servers wrote to standard error */
  async stop(): Promise<string> {
    for (const server of this.#running) server?.kill('SIGTERM');
    const ended = await Promise.all(this.#running.map((server) => server?.ended));
    return ended.map((each) => each?.stderr ?? '').join('');
  }

  async setUp(settings: EventSettings, endpointUrls: readonly string[]): Promise<string> {
    const { DATABASE_URL } = this.#environment;
    const secret = await newKey(DATABASE_URL as string, ACCOUNT);
    await using database = await openAccountDatabase(this.database);
    const thresholds = new Thresholds(database, Date.now);
    for (const threshold of settings.thresholds) await thresholds.add(ACCOUNT_NUMBER, threshold);
    await thresholds.setExpiringDays(ACCOUNT_NUMBER, settings.expiringDays);
    const rules = { allowPrivate: false, allowLoopback: true };
    const endpoints = new Endpoints({ database, secrets: new SecretBox(this.#webhookKey), now: Date.now, rules });
    for (const url of endpointUrls)
      await endpoints.add({ account: ACCOUNT_NUMBER, url, types: [], createdBy: 'operator' });
    return secret;
  }

  async pending(): Promise<number> {
    await using database = await openAccountDatabase(this.database);
    const { pending } = await database.queries
      .selectFrom('webhook_pending')
      .select(({ fn }) => fn.countAll().as('pending'))
      .executeTakeFirstOrThrow();
    return Number(pending);
  }
}
