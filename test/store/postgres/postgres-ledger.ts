// PostgreSQL ledgers for tests. A ledger uses the database's clock, or a clock that the test sets. If the test sets the
// clock, the store reads the time from a table.

import type { TestContext } from 'node:test';
import pg from 'pg';
import type { Instant } from '../../../src/ledger/instant.ts';
import type { PostgresOptions } from '../../../src/store/postgres/pool/connection-pool.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { openPostgresAccountDatabase } from '../../../src/store/postgres/reads/account-database.ts';
import { openPostgresTools } from '../../../src/store/postgres/tools/ledger-tools.ts';
import { type Audited, auditOf } from '../temporary-ledger.ts';
import { type NewLedger, type PluggedLedger, TestLedger } from '../test-ledger.ts';
import type { PostgresServer } from './postgres-server.ts';

const OPTIONS = { lanes: 4, prepared: true, citus: null, shards: 16, acceptUnsafe: true } as const;

export function optionsFor(url: string, change: Partial<PostgresOptions> = {}): PostgresOptions {
  return { ...OPTIONS, ...change, url };
}

export function pluggedDatabase(url: string, change: Partial<PostgresOptions> = {}): PluggedLedger {
  const options = optionsFor(url, change);
  return {
    open: () => openPostgresStore(options),
    openTools: async () => (await openPostgresTools(options, { create: false })).tools,
    openAccounts: () => openPostgresAccountDatabase(url),
    failCommits: (isFailing) => failCommits(url, isFailing),
    remove: async () => {},
  };
}

export function pluggedOnMovedClock(
  url: string,
  wall: () => Instant,
  change: Partial<PostgresOptions> = {},
): PluggedLedger {
  const clock = new MovedClock(url, wall);
  const plugged = pluggedDatabase(url, { ...change, now: TEST_NOW });
  return {
    ...plugged,
    async open() {
      await clock.show();
      const { ledger, keys, console, events, testClock } = await plugged.open();
      return {
        ledger: clock.before(ledger),
        keys: clock.before(keys),
        console: clock.before(console),
        events: clock.before(events),
        imports: null,
        testClock: testClock && clock.before(testClock),
      };
    },
    async openTools() {
      await clock.show();
      return plugged.openTools();
    },
    remove: () => clock.close(),
  };
}

export async function openFor(t: TestContext, url: string, change: Partial<PostgresOptions> = {}): Promise<TestLedger> {
  return closedAfter(t, await TestLedger.open(async () => pluggedDatabase(url, change)));
}

export async function openOnMovedClock(t: TestContext, url: string, wall: () => Instant): Promise<TestLedger> {
  return closedAfter(t, await TestLedger.open(async () => pluggedOnMovedClock(url, wall)));
}

export function newLedgerOn(server: PostgresServer, change: Partial<PostgresOptions> = {}, isMoved = false): NewLedger {
  return async (wall) => {
    const url = await server.createLedger();
    const plugged = isMoved ? pluggedOnMovedClock(url, wall, change) : pluggedDatabase(url, change);
    const remove = async () => {
      await plugged.remove();
      await server.emptyLedger(url);
    };
    return { ...plugged, remove };
  };
}

export async function auditBeside(url: string): Promise<Audited> {
  const { tools } = await openPostgresTools(optionsFor(url), { create: false });
  return await auditOf(tools).finally(() => tools.close());
}

function closedAfter(t: TestContext, ledger: TestLedger): TestLedger {
  t.after(async () => {
    await ledger.close();
    await ledger.remove();
  });
  return ledger;
}

const FAILING = [
  'INSERT ON scrip.postings',
  'INSERT OR DELETE ON scrip.idempotency_records',
  'INSERT OR DELETE ON scrip.events',
];

async function failCommits(url: string, isFailing: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const trigger = (index: number) => `test_failing_${index}`;
  const failing = FAILING.map(
    (event, index) =>
      `CREATE CONSTRAINT TRIGGER ${trigger(index)} AFTER ${event} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION public.test_fail()`,
  );
  const working = FAILING.map((event, index) => `DROP TRIGGER ${trigger(index)} ON ${event.split(' ').at(-1)}`);
  await client.query(
    `CREATE OR REPLACE FUNCTION public.test_fail() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE 'COMMIT fails' USING ERRCODE = '53100'; END $$;
     ${(isFailing ? failing : working).join('; ')}`,
  );
  await client.end();
}

const TEST_NOW = '(SELECT at FROM public.test_clock)';

const SYNCHRONOUS = new Set(['trouble', 'unreachable', 'of']);

class MovedClock {
  readonly #client: pg.Client;
  readonly #wall: () => Instant;
  #connected: Promise<unknown> | null = null;
  #latest = Number.NaN;
  #shown: Promise<unknown> = Promise.resolve();

  constructor(url: string, wall: () => Instant) {
    // Several processes update the clock table at the same time. Some tests make REPEATABLE READ the server's default
    // isolation level, at which concurrent updates could fail.
    const options = '-c default_transaction_isolation=read\\ committed';
    this.#client = new pg.Client({ connectionString: url, options });
    this.#wall = wall;
  }

  /** Each asynchronous method of the returned object first writes the test's time to the clock table. */
  before<Port extends object>(port: Port): Port {
    const timed: Record<string, unknown> = {};
    for (const name of methodsOf(port)) {
      const member = Reflect.get(port, name);
      const call = typeof member === 'function' ? member.bind(port) : member;
      const isImmediate = typeof member !== 'function' || SYNCHRONOUS.has(name);
      timed[name] = isImmediate ? call : (...args: unknown[]) => this.show().then(() => call(...args));
    }
    return timed as Port;
  }

  async show(): Promise<void> {
    this.#connected ??= this.#connect();
    await this.#connected;
    const wall = this.#wall();
    if (wall !== this.#latest) {
      this.#latest = wall;
      const show = () => this.#client.query('UPDATE public.test_clock SET at = $1', [wall]);
      this.#shown = this.#shown.then(show);
    }
    await this.#shown;
  }

  async close(): Promise<void> {
    if (this.#connected !== null) await this.#client.end();
  }

  async #connect(): Promise<void> {
    await this.#client.connect();
    await this.#client.query('CREATE TABLE IF NOT EXISTS public.test_clock (at bigint NOT NULL)');
    await this.#client.query('INSERT INTO public.test_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM public.test_clock)');
  }
}

function methodsOf(port: object): string[] {
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(port));
  return [...new Set([...Object.keys(port), ...inherited])].filter((name) => name !== 'constructor' && name in port);
}
