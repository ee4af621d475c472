// Half-open connections: a firewall drops all data, and neither side notices. The service still sends correct responses
// in time, and recovers by itself.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AccountDatabase } from '../../../../src/store/account-database.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { openPostgresAccountDatabase } from '../../../../src/store/postgres/reads/account-database.ts';
import { eventually, type Reply, type Scrip, someone, startScrip } from '../../../http/running-service.ts';
import { problemsOf } from '../../temporary-ledger.ts';
import { History, startLoad } from '../acknowledged-history.ts';
import { auditBeside, optionsFor } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { databaseAt } from '../scrip-on-postgres.ts';
import { TcpProxy } from '../tcp-proxy.ts';

const LANES = 4;
/** Twice the statement timeout, because a retry may use another half-open connection. The last second is slack. */
const IDLE_MS_MAX = 2 * 5_000 + 1_000;
/**
 * A COMMIT may take 5 s, the search for its outcome 8 s, and the last lookup in this search 2 s. A batch that was in
 * the queue during this time may then need 2 s for a new connection and 5 s for its statements. The last second is
 * slack.
 */
const UNDER_WAY_MS_MAX = 5_000 + 8_000 + 2_000 + 2_000 + 5_000 + 1_000;
/** Each half-open connection causes a timeout, and some of these timeouts begin only after others have ended. */
const RECOVERY_MS_MAX = 30_000;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Service {
  readonly scrip: Scrip;
  readonly proxy: TcpProxy;
  readonly direct: string;
}

async function withService(work: (service: Service) => Promise<void>): Promise<void> {
  const proxy = await TcpProxy.to(server.port);
  const direct = await server.createDatabase();
  const scrip = await startScrip({ database: databaseAt(proxy.url(direct), { lanes: LANES }) });
  try {
    await work({ scrip, proxy, direct });
    assert.deepEqual(problemsOf(await auditBeside(direct)), []);
  } finally {
    await scrip.stop();
    await proxy.close();
  }
}

interface Accounts {
  readonly accounts: AccountDatabase;
  readonly proxy: TcpProxy;
  readonly direct: string;
}

async function withAccounts(work: (accounts: Accounts) => Promise<void>): Promise<void> {
  const direct = await server.createDatabase();
  await (await openPostgresStore(optionsFor(direct))).ledger.close();
  const proxy = await TcpProxy.to(server.port);
  const accounts = openPostgresAccountDatabase(proxy.url(direct));
  try {
    await work({ accounts, proxy, direct });
  } finally {
    await accounts[Symbol.asyncDispose]();
    await proxy.close();
  }
}

interface Answer {
  readonly what: string;
  readonly tookMs: number;
}

async function timed(request: Promise<Reply>): Promise<Answer> {
  const began = performance.now();
  const { status, body } = await request;
  return { what: status === 200 ? '200' : `${status} ${body.error}`, tookMs: performance.now() - began };
}

function askAll(scrip: Scrip): Promise<Answer>[] {
  const user = someone();
  return [
    scrip.post('/add', { end_user_id: user, amount: 1 }),
    scrip.post('/start-cycle', { end_user_id: someone(), amount: 1 }),
    scrip.get('/get-active-balance', { end_user_id: user }),
    scrip.get('/get-all-user-transactions', { end_user_id: user }),
  ].map(timed);
}

function assertInTime(answers: readonly Answer[], allowed: readonly string[], limitMs: number): string {
  for (const { what, tookMs } of answers) {
    assert(allowed.includes(what), what);
    assert(tookMs < limitMs, `${what} took ${tookMs} ms`);
  }
  const slowest = Math.round(Math.max(...answers.map(({ tookMs }) => tookMs)));
  const counts = Object.entries(Object.groupBy(answers, ({ what }) => what));
  return `${counts.map(([what, those]) => `${those?.length} ${what}`).join(', ')}; the slowest after ${slowest} ms`;
}

async function assertWorksAgain({ scrip }: Service): Promise<void> {
  await eventually(async () => (await scrip.get('/readyz')).status === 200, 'ready again', RECOVERY_MS_MAX);
  const works = async () => (await Promise.all(askAll(scrip))).every(({ what }) => what === '200');
  await eventually(works, 'all calls work again', RECOVERY_MS_MAX);
}

describe('half-open connections to PostgreSQL', { concurrency: true, timeout: 120_000 }, () => {
  test('if idle connections to PostgreSQL are half open, requests get responses in time, and the service recovers', (t: TestContext) =>
    withService(async (service) => {
      const { scrip, proxy } = service;
      const warm = await Promise.all(Array.from({ length: 30 }, () => askAll(scrip)).flat());
      for (const { what } of warm) assert.equal(what, '200');
      assert(proxy.connections > LANES, `${proxy.connections} connections`);
      proxy.swallowAll();
      proxy.heal();
      const asked = Array.from({ length: 10 }, () => askAll(scrip)).flat();
      t.diagnostic(assertInTime(await Promise.all(asked), ['200', '503 StoreUnavailable'], IDLE_MS_MAX));
      await assertWorksAgain(service);
    }));

  test('if connections to PostgreSQL repeatedly become half open under load, no write is lost or stored twice, and writes continue', (t: TestContext) =>
    withService(async (service) => {
      const { scrip, proxy, direct } = service;
      const { ledger } = scrip.service.stores;
      const history = new History();
      const load = startLoad(ledger, history);
      t.after(() => load.stop());
      for (let round = 0; round < 3; round++) {
        await load.acknowledged(200, 10_000);
        proxy.swallowAll();
        proxy.heal();
        await load.acknowledged(1, UNDER_WAY_MS_MAX);
      }
      await load.acknowledged(100, UNDER_WAY_MS_MAX);
      await load.stop();
      assert.deepEqual(await history.faultsOf(ledger, direct), []);
      assert.equal(history.count('Internal'), 0);
      t.diagnostic(history.summary);
      await assertWorksAgain(service);
    }));

  test('if PostgreSQL becomes unreachable under load, requests get responses in time', (t: TestContext) =>
    withService(async (service) => {
      const { scrip, proxy, direct } = service;
      const { ledger } = scrip.service.stores;
      const history = new History();
      const load = startLoad(ledger, history);
      t.after(() => load.stop());
      await load.acknowledged(200, 10_000);
      proxy.swallowAll();
      const answers: Promise<Answer>[] = [];
      for (let time = 0; time < 40; time++) {
        answers.push(...askAll(scrip));
        await sleep(250);
      }
      assert.equal((await scrip.get('/readyz')).status, 503);
      assert.equal((await scrip.get('/healthz')).status, 200);
      const allowed = ['503 StoreUnavailable', '503 OutcomeUnknown', '503 Overloaded'];
      t.diagnostic(assertInTime(await Promise.all(answers), allowed, UNDER_WAY_MS_MAX));
      proxy.heal();
      await load.acknowledged(1, RECOVERY_MS_MAX);
      await load.stop();
      assert.deepEqual(await history.faultsOf(ledger, direct), []);
      t.diagnostic(history.summary);
      await assertWorksAgain(service);
    }));

  test('a half-open connection of the console and of the webhooks is used only once', () =>
    withAccounts(async ({ accounts, proxy }) => {
      const names = () => accounts.queries.selectFrom('accounts').select('name').execute();
      await names();
      proxy.swallowAll();
      proxy.heal();
      await assert.rejects(names(), /timeout/);
      assert.deepEqual(await names(), []);
    }));

  test('if PostgreSQL begins a transaction of the console or of the webhooks too late, later changes are not part of it', () =>
    withAccounts(async ({ accounts, proxy, direct }) => {
      await accounts.queries.selectFrom('accounts').select('name').execute();
      proxy.delayMs = 6_000;
      await assert.rejects(
        accounts.relaxed(async () => {}),
        /timeout/,
      );
      proxy.delayMs = 0;
      await sleep(7_500);
      await accounts.queries.insertInto('accounts').values({ account: 1, name: 'ada', created_at: 1 }).execute();
      const [row] = (await server.query('SELECT name FROM scrip.accounts', new URL(direct).pathname.slice(1))).rows;
      assert.equal(row?.name, 'ada', 'the change is committed');
    }));
});
