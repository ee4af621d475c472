// A client of the console that stores cookies and sends forms like a browser, and a function that defines tests for
// both stores.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe } from 'node:test';
import type { ConsoleSettings } from '../../src/console/console-context.ts';
import { effort } from '../effort.ts';
import { MovableClock, type Reply, type Scrip, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { databaseAt } from '../store/postgres/scrip-on-postgres.ts';
import { makeHashesCheap } from './argon2-wrapper.ts';

export const PASSWORD = 'seven green bottles on a wall';
export const OTHER_PASSWORD = 'eight blue kettles in a row';

type Fields = Readonly<Record<string, string>>;
type Headers = Readonly<Record<string, string>>;

export class Visitor {
  readonly cookies = new Map<string, string>();
  readonly #scrip: Scrip;
  readonly #headers: Headers;

  constructor(scrip: Scrip, headers: Headers = {}) {
    this.#scrip = scrip;
    this.#headers = headers;
  }

  get(path: string, headers: Headers = {}): Promise<Reply> {
    return this.#send('GET', path, undefined, headers);
  }

  head(path: string): Promise<Reply> {
    return this.#send('HEAD', path, undefined, {});
  }

  post(path: string, fields: Fields = {}, headers: Headers = {}): Promise<Reply> {
    return this.postBody(path, String(new URLSearchParams(fields)), headers);
  }

  postBody(path: string, body: string, headers: Headers = {}): Promise<Reply> {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    return this.#send('POST', path, body, { ...form, ...headers });
  }

  signUp(fields: Fields): Promise<Reply> {
    return this.post('/console/sign-up', { name: 'Lovelace Ltd', password: PASSWORD, ...fields });
  }

  signIn(email: string, password = PASSWORD): Promise<Reply> {
    return this.post('/console/sign-in', { email, password });
  }

  async isSignedIn(): Promise<boolean> {
    const { status, headers } = await this.get('/console/account');
    assert(status === 200 || headers.location === '/console/sign-in', `${status}`);
    return status === 200;
  }

  async #send(method: string, path: string, body: string | undefined, headers: Headers): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await this.#scrip.call(method, path, {
      key: null,
      body,
      headers: { ...(cookie ? { cookie } : {}), ...this.#headers, ...headers },
    });
    for (const line of reply.headers['set-cookie'] ?? []) this.#keep(line);
    return reply;
  }

  #keep(line: string): void {
    const [pair, ...attributes] = line.split(/; */) as [string, ...string[]];
    const [name, value] = pair.split('=') as [string, string];
    if (attributes.includes('Max-Age=0')) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

export function someEmail(): string {
  return `${randomUUID()}@example.com`;
}

/** The first owner gets the account that the test server already has. */
export async function newOwner(scrip: Scrip, name = 'Lovelace Ltd'): Promise<Visitor & { readonly email: string }> {
  const visitor = Object.assign(new Visitor(scrip), { email: someEmail() });
  assertGoesTo(await visitor.signUp({ email: visitor.email, name }), '/console/overview');
  return visitor;
}

export async function invite(owner: Visitor, role: string): Promise<string> {
  const page = await owner.post('/console/members/invite', { role });
  const link = />(http[^<]+\/console\/join\/[^<]+)</.exec(decode(page.text))?.[1];
  assert(link, page.text);
  return new URL(link).pathname;
}

export async function newMember(
  scrip: Scrip,
  owner: Visitor,
  role = 'member',
): Promise<Visitor & { readonly email: string }> {
  const visitor = Object.assign(new Visitor(scrip), { email: someEmail() });
  const link = await invite(owner, role);
  assertGoesTo(await visitor.post(link, { email: visitor.email, password: PASSWORD }), '/console/overview');
  return visitor;
}

export function assertGoesTo({ status, headers, text }: Reply, path: string): void {
  assert.deepEqual([status, headers.location], [303, path], text);
}

export function decode(text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
}

export interface Started {
  readonly scrip: Scrip;
  readonly clock: MovableClock;
  /** Table names without a schema work on both SQLite and PostgreSQL. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
}

export type Start = (settings?: Partial<ConsoleSettings>) => Promise<Started>;

/** No test crashes this server, so it needs no fsync. */
let server: Promise<PostgresServer> | null = null;
function postgres(): Promise<PostgresServer> {
  server ??= PostgresServer.start({ fsync: 'off' });
  return server;
}
after(async () => {
  await (await server)?.remove();
});

async function stopAll(started: Scrip[]): Promise<void> {
  await Promise.all(started.splice(0).map((scrip) => scrip.stop()));
}

type DefineTests = (start: Start) => void;

export function onBothStores(name: string, define: DefineTests): void {
  onSqlite(name, define);
  onPostgres(name, define);
}

/** Defines tests that `npm test` runs only on SQLite, because other tests run the same queries on PostgreSQL. */
export const onOneStore = effort(onSqlite, onBothStores);

function onSqlite(name: string, define: DefineTests): void {
  makeHashesCheap();
  const started: Scrip[] = [];
  describe(`${name} (SQLite)`, () => {
    afterEach(() => stopAll(started));
    define(async (settings = {}) => {
      const { temporaryFile } = await import('../store/temporary-ledger.ts');
      const { DatabaseSync } = await import('node:sqlite');
      const clock = new MovableClock(new Date().toISOString());
      const file = temporaryFile();
      const scrip = await startScrip({ clock, file, console: settings });
      started.push(scrip);
      const sql: Started['sql'] = async (text) => {
        const db = new DatabaseSync(file, { timeout: 5_000 });
        try {
          return db
            .prepare(text)
            .all()
            .map((row) => ({ ...row }));
        } finally {
          db.close();
        }
      };
      return { scrip, clock, sql };
    });
  });
}

function onPostgres(name: string, define: DefineTests): void {
  makeHashesCheap();
  const started: Scrip[] = [];
  describe(`${name} (PostgreSQL)`, () => {
    const used: string[] = [];
    before(postgres);
    afterEach(async () => {
      await stopAll(started);
      const server = await postgres();
      await Promise.all(used.splice(0).map((url) => server.emptyLedger(url)));
    });
    define(async (settings = {}) => {
      const server = await postgres();
      const clock = new MovableClock(new Date().toISOString());
      const url = await server.createLedger();
      used.push(url);
      const scrip = await startScrip({ clock, database: databaseAt(url), console: settings });
      started.push(scrip);
      const sql: Started['sql'] = async (text) => {
        const qualified = text.replaceAll(/(?<!\bTO )\b(console_\w+|webhook_\w+|accounts)\b/g, 'scrip.$1');
        return (await server.query(qualified, new URL(url).pathname.slice(1))).rows;
      };
      return { scrip, clock, sql };
    });
  });
}
