// A process becomes unreachable in the middle of a transaction: all its data is dropped, and PostgreSQL does not notice.
// PostgreSQL soon ends the transaction, so that other processes get its locks.

import { after, before, describe, type TestContext, test } from 'node:test';
import { createApiKey } from '../../../../src/store/key-store.ts';
import { openPostgresAccountDatabase } from '../../../../src/store/postgres/reads/account-database.ts';
import { openPostgresTools } from '../../../../src/store/postgres/tools/ledger-tools.ts';
import { eventually } from '../../../http/running-service.ts';
import { EndUser } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { openFor, optionsFor } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { TcpProxy } from '../tcp-proxy.ts';

const RELEASED_MS_MAX = 15_000;
const ADA = new EndUser(1, 1);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

interface Unreachable {
  /** A ledger whose process is reachable. */
  readonly ledger: TestLedger;
  readonly direct: string;
  /** The URL of the same ledger for the process that becomes unreachable. */
  readonly url: string;
  /** Runs `work`, and drops all data of the connection that sends a statement that matches `lock`. */
  cutOff(lock: RegExp, work: () => Promise<unknown>): Promise<void>;
}

async function withUnreachable(t: TestContext, work: (unreachable: Unreachable) => Promise<void>): Promise<void> {
  const direct = await server.createDatabase();
  const ledger = await openFor(t, direct);
  const proxy = await TcpProxy.to(server.port);
  const cutOff = (lock: RegExp, lost: () => Promise<unknown>): Promise<void> =>
    new Promise((resolve) => {
      proxy.rule = (bytes) => {
        if (!lock.test(bytes.toString('latin1'))) return 'pass';
        proxy.rule = () => 'pass';
        resolve();
        return 'pass, then swallow';
      };
      void lost().catch(() => {});
    });
  await work({ ledger, direct, url: proxy.url(direct), cutOff }).finally(() => proxy.close());
}

function soon(works: () => Promise<unknown>, what: string): Promise<void> {
  const isDone = () =>
    works().then(
      (result) => result !== false,
      () => false,
    );
  return eventually(isDone, what, RELEASED_MS_MAX);
}

describe('a process that becomes unreachable in a transaction', { concurrency: true, timeout: 120_000 }, () => {
  test('does not keep other processes from updating the totals', (t) =>
    withUnreachable(t, async ({ ledger, url, cutOff }) => {
      const lost = await openFor(t, url);
      await ledger.write([ADA.add(10)]);
      await cutOff(/FOR UPDATE SKIP LOCKED/, () => lost.store.updateTotals());
      const isCounted = async () => {
        await ledger.consumeFeed();
        return (await ledger.console.overview(1, { days: 2 })).outstanding === 10n;
      };
      await soon(isCounted, 'the totals are up to date');
    }));

  test('does not keep other processes from creating API keys', (t) =>
    withUnreachable(t, async ({ ledger, url, cutOff }) => {
      const lost = await openFor(t, url);
      const create = ({ keys }: TestLedger) => createApiKey(keys, { accountName: 'ada', scope: 'write' });
      await cutOff(/LOCK TABLE/, () => create(lost));
      await soon(() => create(ledger), 'an API key is created');
    }));

  test('does not keep other processes from changing accounts', (t) =>
    withUnreachable(t, async ({ direct, url, cutOff }) => {
      await using lost = openPostgresAccountDatabase(url);
      await using accounts = openPostgresAccountDatabase(direct);
      await cutOff(/LOCK TABLE/, () => lost.alone(async () => {}));
      await soon(() => accounts.alone(async () => {}), 'an account can be changed');
    }));

  test('does not keep other processes from storing webhook deliveries', (t) =>
    withUnreachable(t, async ({ direct, url, cutOff }) => {
      await using lost = openPostgresAccountDatabase(url);
      await using accounts = openPostgresAccountDatabase(direct);
      await accounts.queries.insertInto('accounts').values({ account: 1, name: 'ada', created_at: 1 }).execute();
      const change = (database: typeof lost) =>
        database.relaxed((queries) => queries.updateTable('accounts').set({ last_endpoint_id: 1 }).execute());
      await cutOff(/update "scrip"/, () => change(lost));
      await soon(() => change(accounts), 'the row is changed');
    }));

  test('does not keep other processes from writing, if it was computing a digest', (t) =>
    withUnreachable(t, async ({ ledger, url, cutOff }) => {
      await ledger.write([ADA.add(10)]);
      const { tools } = await openPostgresTools(optionsFor(url), { create: false });
      await cutOff(/LOCK TABLE/, () => tools.digest(null));
      await soon(() => ledger.write([ADA.add(1)]), 'a write succeeds');
    }));
});
