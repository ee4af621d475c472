// Helpers for the tests of webhooks: a receiver, event logs, and jobs that deliver events to the receiver.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Endpoints } from '../../src/events/webhooks/endpoints.ts';
import { SecretBox } from '../../src/events/webhooks/secrets.ts';
import { WebhookJob, type WebhookOptions } from '../../src/events/webhooks/webhook-job.ts';
import type { AccountDatabase } from '../../src/store/account-database.ts';
import type { EventLog, EventPage, EventPageRequest, EventType, LoggedEvent } from '../../src/store/event-log.ts';
import { openSqliteAccountDatabase } from '../../src/store/sqlite/reads/account-database.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';

export const ACCOUNT = 1;
export const KEY = '0f'.repeat(32);
export const RULES = { allowPrivate: false, allowLoopback: true };

export interface Received {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = (request: Received, response: ServerResponse) => void;

export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  answer: Answer = (_request, response) => response.end();
  readonly #server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { headers, url: path = '' } = request;
    const received = { id: String(headers['webhook-id']), path, headers, body };
    this.received.push(received);
    this.answer(received, response);
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = '/'): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  get ids(): string[] {
    return [...new Set(this.received.map(({ id }) => id))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

export function withStatus(status: number, text = ''): Answer {
  return (_request, response) => {
    response.statusCode = status;
    response.end(text);
  };
}

/** An event's position is its number, counted from 1. */
export class MemoryEvents implements Pick<EventLog, 'page' | 'latest' | 'positionBefore'> {
  readonly events: LoggedEvent[] = [];
  pagesRead = 0;

  add(endUserId: string, count = 1, type: EventType = 'credits.added'): string[] {
    return Array.from({ length: count }, () => {
      const number = this.events.length + 1;
      const id = `evt_${String(number).padStart(32, '0')}`;
      const data = JSON.stringify({ end_user_id: endUserId, amount: number, balance: number });
      this.events.push({ id, type, at: 1_000 * number, data, position: String(number) });
      return id;
    });
  }

  page(_account: number, { after, types, limit }: EventPageRequest): Promise<EventPage> {
    this.pagesRead += 1;
    const start = Number(after ?? 0);
    const events: LoggedEvent[] = [];
    let position = start;
    while (position < this.events.length && events.length < limit) {
      const event = this.events[position] as LoggedEvent;
      if (types === undefined || types.includes(event.type)) events.push(event);
      position += 1;
    }
    return Promise.resolve({ events, position: String(position), hasMore: position < this.events.length });
  }

  latest(): Promise<string> {
    return Promise.resolve(String(this.events.length));
  }

  positionBefore(): Promise<string> {
    return Promise.resolve('0');
  }
}

export interface Setting {
  readonly database: AccountDatabase;
  readonly events: MemoryEvents;
  readonly endpoints: Endpoints;
  readonly secrets: SecretBox;
  readonly log: string[];
  /** The job runs only when `until`, `ticks` or `tick` runs it, and stops when the test ends. */
  job(options?: Partial<WebhookOptions>): WebhookJob;
}

export async function webhookSetting(t: TestContext, now: () => number = Date.now): Promise<Setting> {
  const file = temporaryFile();
  await (await openSqliteStore(file)).ledger.close();
  return settingOn(t, openSqliteAccountDatabase(file), now);
}

/** @param database a new ledger, which is closed at the end of the test */
export async function settingOn(
  t: TestContext,
  database: AccountDatabase,
  now: () => number = Date.now,
): Promise<Setting> {
  await database.queries.insertInto('accounts').values({ account: ACCOUNT, name: 'Acme', created_at: 0 }).execute();
  const secrets = new SecretBox(KEY);
  const endpoints = new Endpoints({ database, secrets, now, rules: RULES });
  const events = new MemoryEvents();
  const log: string[] = [];
  const add = (fields: object, message: string) => log.push(JSON.stringify({ ...fields, message }));
  const logger = { info: add, warn: add, error: add };
  const jobs: WebhookJob[] = [];
  t.after(async () => {
    await Promise.all(jobs.map((job) => job.stop()));
    await database[Symbol.asyncDispose]();
  });
  const job = (options: Partial<WebhookOptions> = {}) => {
    const base = { database, events, secrets, rules: RULES, now, logger, userAgent: 'Scrip/test', leases: null };
    const made = new WebhookJob({ ...base, ...options });
    jobs.push(made);
    return made;
  };
  return { database, events, endpoints, secrets, log, job };
}

export async function addEndpoint(
  { endpoints }: Setting,
  url: string,
  types: readonly EventType[] = [],
): Promise<{ id: number; secret: string }> {
  const added = await endpoints.add({ account: ACCOUNT, url, types, createdBy: 'operator' });
  assert(added);
  return { id: added.endpoint.id, secret: added.secret };
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  ...jobs: readonly WebhookJob[]
): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await condition())) {
    assert(performance.now() < deadline, `timed out: ${condition}`);
    await Promise.all(jobs.map((job) => job.tick()));
    await setTimeout(5);
  }
}

export async function ticks(count: number, ...jobs: readonly WebhookJob[]): Promise<void> {
  for (let round = 0; round < count; round++) {
    await Promise.all(jobs.map((job) => job.tick()));
    await setTimeout(5);
  }
}

export async function storedPosition({ database }: Setting, id: number): Promise<number> {
  const row = await database.queries
    .selectFrom('webhook_endpoints')
    .select('position')
    .where('endpoint_id', '=', id)
    .executeTakeFirstOrThrow();
  return Number(row.position ?? 0);
}

export async function pendingIds({ database }: Setting, id: number): Promise<string[]> {
  const rows = await database.queries
    .selectFrom('webhook_pending')
    .select('event_id')
    .where('endpoint_id', '=', id)
    .orderBy('place')
    .execute();
  return rows.map((row) => row.event_id);
}

export function receivedOf(receiver: Receiver, endUserId: string): string[] {
  return receiver.received.filter(({ body }) => JSON.parse(body).data.end_user_id === endUserId).map(({ id }) => id);
}
