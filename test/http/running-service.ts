// Starts Scrip in this process on a temporary ledger, and provides an HTTP client and assertions for the tests.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from '../../src/accounts/api-key.ts';
import type { RateLimitSettings } from '../../src/accounts/rate-limit.ts';
import { type Database, readConfig } from '../../src/config.ts';
import type { ConsoleSettings } from '../../src/console/console-context.ts';
import type { ServerLimits } from '../../src/http/limits.ts';
import { openTools } from '../../src/open-tools.ts';
import { type Service, startService } from '../../src/service.ts';
import { createApiKey } from '../../src/store/key-store.ts';
import { type Audited, auditOf, problemsOf } from '../store/temporary-ledger.ts';

/** The members of all response bodies; each body has only some of them. */
export interface Body {
  readonly end_user_id: string;
  readonly amount: number;
  readonly created_at: string;
  readonly current_cycle_start: string;
  readonly current_cycle_end: string;
  readonly cycle_type: string;
  readonly status: string | number;
  readonly active_balance: number;
  readonly active_balance_by_cycle: readonly CycleEntry[];
  readonly transactions: readonly TransactionBody[];
  readonly error: string;
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  readonly request_id: string;
  readonly error_code: string;
  readonly message: string;
  readonly timestamp: string;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly requested: number;
  readonly available: number;
  readonly shortfall: number;
  readonly cycle: Body;
  readonly held?: number;
  readonly hold_id: string;
  readonly transaction_id: string;
  readonly expires_at: string;
  readonly returned: number;
  readonly expired: number;
  readonly refundable: number;
  readonly holds: readonly HoldBody[];
  readonly points: readonly { readonly at: string; readonly active_balance: number; readonly held?: number }[];
  readonly next_cursor?: string | null;
  readonly now: string;
  readonly validity_months?: number;
  readonly next_cycle?: NextCycle;
  readonly starts_at: string;
  readonly active_balance_at_start: number;
  readonly expiring: number;
}

export type NextCycle = Readonly<Record<string, unknown>>;

export type HoldBody = Pick<Body, 'hold_id' | 'amount' | 'created_at' | 'expires_at' | 'status'>;

export interface CycleEntry {
  readonly cycle_start: string;
  readonly cycle_end: string;
  readonly amount: number;
  readonly starting_amount: number;
  readonly status: string;
  readonly cycle_type: string;
  readonly validity_months?: number;
  readonly rollover_max?: number;
  readonly next_cycle?: NextCycle;
}

export interface TransactionBody {
  readonly transaction_id: string;
  readonly amount: number;
  readonly created_at: string;
  readonly expire_at: string;
  readonly kind?: string;
  readonly note?: string | null;
  readonly actor?: string;
  readonly reference?: string;
  readonly refundable?: number;
  readonly held?: number;
  readonly cycles?: readonly Readonly<Record<string, unknown>>[];
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Body;
}

export interface Call {
  /** Strings and bytes are sent unchanged; any other value is sent as JSON. */
  readonly body?: unknown;
  /** The default is the API key with the `write` scope. If `key` is null, no `Authorization` header is sent. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

export class MovableClock {
  #now: number;
  readonly wall = (): number => this.#now;

  constructor(at: string) {
    this.#now = Date.parse(at);
  }

  get now(): number {
    return this.#now;
  }

  set(at: string | number): void {
    this.#now = typeof at === 'number' ? at : Date.parse(at);
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

export interface Scrip {
  readonly service: Service;
  readonly url: string;
  readonly port: number;
  readonly writeKey: string;
  readonly readKey: string;
  readonly log: readonly string[];
  createKey(accountName: string, scope: Scope): Promise<string>;
  call(method: string, path: string, call?: Call): Promise<Reply>;
  post(path: string, fields: unknown, call?: Omit<Call, 'body'>): Promise<Reply>;
  get(path: string, fields?: Readonly<Record<string, string>>, call?: Omit<Call, 'body'>): Promise<Reply>;
  balance(endUser: string): Promise<Body>;
  transactions(endUser: string): Promise<readonly TransactionBody[]>;
  audit(): Promise<Audited>;
  assertConsistent(): Promise<void>;
  /**
   * Makes `stop` call `release` first. Without this call, `stop` would wait for a connection that a failed test left
   * open.
   */
  atStop(release: () => void): void;
  stop(): Promise<void>;
}

export interface ScripOptions {
  readonly clock?: MovableClock;
  /** The default is a temporary file that `stop` removes. */
  readonly file?: string;
  readonly database?: Database;
  /** By default, sign-up is open and there is no mail server. */
  readonly console?: Partial<ConsoleSettings>;
  readonly rateLimit?: RateLimitSettings;
  readonly limits?: Partial<ServerLimits>;
  readonly testClock?: boolean;
}

export async function startScrip(options: ScripOptions = {}): Promise<Scrip> {
  const { clock, file, database, console: settings, rateLimit, limits, testClock = false } = options;
  const folder = await mkdtemp(join(tmpdir(), 'scrip-http-'));
  const log: string[] = [];
  const ledger = database ?? ({ kind: 'file', path: file ?? join(folder, 'ledger.db') } as const);
  const service = await startService(
    {
      // Without WEBHOOK_KEY, a service on PostgreSQL would create a key file in the working directory.
      ...readConfig({ WEBHOOK_KEY: '0'.repeat(64) }),
      port: 0,
      database: ledger,
      testClock,
      logLevel: 'trace',
      console: { publicUrl: null, signUp: 'open', mail: null, ...settings },
      rateLimit: rateLimit ?? null,
    },
    {
      log: { write: (line: string) => void log.push(line) },
      ...(clock ? { wall: clock.wall } : {}),
      ...(limits ? { limits } : {}),
    },
  );
  const createKey = (accountName: string, scope: Scope) => createApiKey(service.stores.keys, { accountName, scope });
  const writeKey = await createKey('Acme', 'write');
  const readKey = await createKey('Acme', 'read');
  const agent = new Agent({ keepAlive: true });
  const audit = async () => {
    const { tools } = await openTools(ledger, { create: false });
    return auditOf(tools).finally(() => tools.close());
  };
  const releases = [() => agent.destroy()];
  const call: Scrip['call'] = (method, path, { body, key = writeKey, headers = {} } = {}) =>
    exchange(agent, new URL(path, service.url), method, { body, key, headers });
  const get: Scrip['get'] = (path, fields = {}, options = {}) =>
    call('GET', `${path}?${new URLSearchParams(fields)}`, options);
  return {
    service,
    url: service.url,
    port: Number(new URL(service.url).port),
    writeKey,
    readKey,
    log,
    createKey,
    call,
    post: (path, fields, options = {}) => call('POST', path, { ...options, body: fields }),
    get,
    balance: async (endUser) => (await get('/get-active-balance', { end_user_id: endUser })).body,
    transactions: async (endUser) =>
      (await get('/get-all-user-transactions', { end_user_id: endUser })).body.transactions,
    audit,
    assertConsistent: async () => assert.deepEqual(problemsOf(await audit()), []),
    atStop: (release) => void releases.push(release),
    async stop() {
      for (const release of releases) release();
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function exchange(agent: Agent, url: URL, method: string, { body, key, headers }: Call): Promise<Reply> {
  const payload =
    body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      agent,
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(payload === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        ...headers,
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => replyOf(incoming).then(resolve, reject));
    outgoing.end(payload);
  });
}

async function replyOf(incoming: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const { statusCode: status = 0, headers } = incoming;
  const isJson = /^application\/(problem\+)?json\b/.test(headers['content-type'] ?? '');
  return { status, headers, text, body: isJson && text !== '' ? JSON.parse(text) : {} };
}

export function someone(): string {
  return randomUUID();
}

export function assertProblem(reply: Reply, error: string, status: number): void {
  const { body } = reply;
  assert.equal(`${reply.status} ${body.error}`, `${status} ${error}`, reply.text);
  assert.equal(reply.headers['content-type'], 'application/problem+json');
  assert.equal(body.type, `/problems/${error}`);
  assert.equal(body.status, status);
  for (const member of ['title', 'detail', 'request_id'] as const) {
    assert.equal(typeof body[member], 'string', `${member} is text`);
    assert.notEqual(body[member], '', `${member} is not empty`);
  }
  assert.match(body.error_code, /^[A-Z]+(_[A-Z]+)*$/);
  assert.equal(body.message, body.detail);
  assert.match(body.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
}

export function assertFieldRefused(reply: Reply, path: string): void {
  assertProblem(reply, 'InvalidField', 422);
  assert(
    reply.body.errors.some((error) => error.path === path && error.message !== ''),
    `the response does not name ${path}: ${reply.text}`,
  );
}

export async function eventually(
  holds: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    assert(performance.now() < deadline, `${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
