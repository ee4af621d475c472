// Tests importing grants: each row is granted once, even if the import is interrupted often and continued much later.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { DAY_MS, HOUR_MS } from '../../../src/ledger/instant.ts';
import { copyDatabase } from '../../../src/open-tools.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { openPostgresImport } from '../../../src/store/postgres/tools/importing.ts';
import { openSqliteImport } from '../../../src/store/sqlite/tools/importing.ts';
import { type ImportRow, ImportStopped, importRows } from '../../../src/store/tools/import.ts';
import type { LedgerImport } from '../../../src/store/tools/ledger-import.ts';
import { optionsFor } from '../postgres/postgres-ledger.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import {
  balanceOf,
  EndUser,
  EVERYTHING,
  historyOf,
  NOON,
  problemsOf,
  temporaryFile,
  transactionsOf,
} from '../temporary-ledger.ts';
import { at, auditAt } from './copied-ledger.ts';
import {
  each,
  Killed,
  type Ledger,
  newFile,
  newServedFile,
  rowsOf,
  run,
  SHA256,
  withAccount,
} from './imported-ledger.ts';

const options = { timeout: 240_000 };
const RETENTION = { grantsMs: 30 * DAY_MS, othersMs: DAY_MS };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

async function newDatabase(): Promise<Ledger> {
  const url = await server.createDatabase();
  const database = url.slice(url.lastIndexOf('/') + 1);
  await server.query('CREATE TABLE public.test_clock (at bigint NOT NULL)', database);
  await server.query(`INSERT INTO public.test_clock VALUES (${NOON})`, database);
  const now = '(SELECT at FROM public.test_clock)';
  const moved = async <Result>(open: () => Promise<Result>) => {
    await server.query(`UPDATE public.test_clock SET at = ${ledger.wall}`, database);
    return open();
  };
  const ledger: Ledger = {
    url,
    wall: NOON,
    open: () => moved(() => openPostgresStore(optionsFor(url, { now }))),
    openImport: () => moved(() => openPostgresImport(optionsFor(url, { now }))),
  };
  return withAccount(ledger);
}

const STORES = [
  ['a file', newFile],
  ['a file that a server uses', newServedFile],
  ['PostgreSQL', newDatabase],
] as const;

async function reading<Result>(ledger: Ledger, read: (store: LedgerStore) => Promise<Result>): Promise<Result> {
  const { ledger: store } = await ledger.open();
  return read(store).finally(() => store.close());
}

function histories(ledger: Ledger, endUsers: number): Promise<string[][]> {
  const users = Array.from({ length: endUsers }, (_, index) => new EndUser(1, index));
  return reading(ledger, (store) => Promise.all(users.map((user) => historyOf(store, user))));
}

function expected(rows: readonly ImportRow[], endUsers: number): string[][] {
  const users = Array.from({ length: endUsers }, (_, index) => new EndUser(1, index).key.endUser);
  return users.map((user) =>
    rows
      .filter(({ endUser }) => endUser === user)
      .map(({ amount }) => `+${amount} add`)
      .reverse(),
  );
}

for (const [what, newLedger] of STORES) {
  describe(`imports into ${what}`, options, () => {
    test(`an import into ${what} grants its rows in order, each with its note and validity, and is recorded as the actor`, async () => {
      const ledger = await newLedger();
      const rows: ImportRow[] = [
        ...rowsOf(3, { validity: { days: 3 } }),
        ...rowsOf(1, { validity: { expiresAt: NOON + 2 * DAY_MS }, note: 'a bundle, bought elsewhere' }),
        ...rowsOf(1, { validity: { expiresAt: NOON + 2 * DAY_MS + 1 } }),
        ...rowsOf(1, { validity: { expiresAt: NOON + 1 } }),
      ];
      const { id, done, granted } = await run(ledger, rows);
      assert.deepEqual([id, done, granted], [1, 6, 6]);
      await reading(ledger, async (store) => {
        const [ada, ben] = [new EndUser(1, 0), new EndUser(1, 1)];
        const transactions = (await transactionsOf(store, ada)).reverse();
        const days = transactions.map(({ createdAt, expiresAt }) => (expiresAt - createdAt) / DAY_MS);
        assert.deepEqual(
          transactions.map(({ amount }) => amount),
          [1, 3, 1, 1, 1],
        );
        assert.deepEqual(days, [3, 3, 2, 3, 1], 'each validity is rounded up to whole days');
        assert(transactions.every(({ actor }) => actor === 'import:1'));
        assert.deepEqual(
          transactions.map(({ note }) => note),
          [null, null, 'a bundle, bought elsewhere', null, null],
        );
        assert.equal(await balanceOf(store, ben), 2);
      });
      const { postings, ...audited } = await auditAt(ledger.url);
      assert.deepEqual([problemsOf({ postings, ...audited }), postings], [[], 6]);
    });

    test(`if an import into ${what} is killed after any batch, it can be continued, and no row is granted twice`, async () => {
      const ledger = await newLedger();
      const rows = rowsOf(900);
      for (const killedAfter of [1, 300, 600]) await assert.rejects(run(ledger, rows, { killedAfter }), Killed);
      const { done, granted } = await run(ledger, rows);
      assert.deepEqual([done, granted], [900, 900]);
      assert.deepEqual(await histories(ledger, 450), expected(rows, 450));
      await run(ledger, rows);
      assert.deepEqual((await auditAt(ledger.url)).postings, 900, 'running a finished import again does nothing');
    });

    test(`if an import into ${what} is continued after all idempotency records have expired, no row is granted twice`, async () => {
      const ledger = await newLedger();
      const rows = rowsOf(600);
      await assert.rejects(run(ledger, rows, { killedAfter: 300 }), Killed);
      ledger.wall += 100 * DAY_MS;
      await reading(ledger, async (store) => {
        while (await store.deleteExpiredRecords(RETENTION));
      });
      await run(ledger, rows);
      assert.deepEqual(await histories(ledger, 300), expected(rows, 300));
      ledger.wall += 100 * DAY_MS;
      await run(ledger, rows);
      assert.deepEqual(await histories(ledger, 300), expected(rows, 300));
    });

    test(`an import into ${what} skips and reports rows that expired before the import was continued`, async () => {
      const ledger = await newLedger();
      const expiresAt = NOON + DAY_MS;
      const rows = [...rowsOf(256), ...rowsOf(2, { validity: { expiresAt } }), ...rowsOf(1)];
      await assert.rejects(run(ledger, rows, { killedAfter: 256 }), Killed);
      ledger.wall = expiresAt;
      const lines: number[] = [];
      const finished = await run(ledger, rows, {
        onNotGranted({ line }, why) {
          assert.equal(why, 'expired');
          lines.push(line);
        },
      });
      assert.deepEqual([finished.done, finished.granted, lines], [259, 257, [2, 3]]);
      const onlyExpired = rowsOf(1, { validity: { expiresAt } });
      const target = await ledger.openImport();
      const one = await target.start({ account: 1, fileName: 'b.csv', sha256: 'cd'.repeat(32), rows: 1 });
      const signal = new AbortController().signal;
      const end = await importRows(target, one, each(onlyExpired), { report() {}, onNotGranted() {}, signal });
      const stored = (await target.imports(1)).map(({ id, rows, done, granted }) => [id, rows, done, granted]);
      await target.close();
      assert.deepEqual([end.done, end.granted], [1, 0]);
      assert.deepEqual(stored, [
        [1, 259, 259, 257],
        [2, 1, 1, 0],
      ]);
    });

    test(`an import into ${what} refuses a row that would exceed the maximum balance, and grants the other rows`, async () => {
      const ledger = await newLedger();
      const rows = [...rowsOf(1), ...rowsOf(1, { amount: AMOUNT_MAX, line: 3 }), ...rowsOf(1)];
      const refused: unknown[] = [];
      const { done, granted } = await run(ledger, rows, {
        onNotGranted: ({ line }, why) => void refused.push([line, why]),
      });
      assert.deepEqual([done, granted, refused], [3, 2, [[3, 'BalanceTooLarge']]]);
      assert.deepEqual(await histories(ledger, 1), [['+1 add', '+1 add']]);
    });

    test(`an import into ${what} stores 2,500 due renewals of an end user before it grants a row`, async () => {
      const ledger = await newLedger();
      const ada = new EndUser(1, 0);
      await reading(ledger, async (store) => void (await store.write([ada.startCycle(5, 1)], () => {})));
      ledger.wall += 2_500 * DAY_MS;
      await run(ledger, rowsOf(1));
      const [latest, before] = (await histories(ledger, 1))[0] as string[];
      assert.deepEqual([latest, before], ['+1 add', '+5 renew']);
      assert.deepEqual((await auditAt(ledger.url)).postings, 2_502);
    });

    test(`a signal stops an import into ${what} after a batch, with a message that explains how to continue`, async () => {
      const ledger = await newLedger();
      const rows = rowsOf(600);
      await assert.rejects(run(ledger, rows, { killedAfter: 300 }), Killed);
      await assert.rejects(run(ledger, rows, { signal: AbortSignal.abort() }), (error: Error) => {
        assert(error instanceof ImportStopped);
        assert.match(error.message, /interrupted after 512 of 600 rows; run the same command again to resume/);
        return true;
      });
    });

    test(`an import into ${what} is identified by its account and the content of the imported file`, async () => {
      const ledger = await newLedger();
      const target = await ledger.openImport();
      const file = { account: 1, fileName: 'a.csv', sha256: SHA256, rows: 5 };
      const first = await target.start(file);
      assert.deepEqual(await target.start({ ...file, fileName: 'b.csv' }), first);
      assert.deepEqual(await target.imports(1), [first]);
      assert.deepEqual([first.id, first.done, first.granted, first.startedAt], [1, 0, 0, NOON]);
      assert.equal((await target.start({ ...file, sha256: 'cd'.repeat(32) })).id, 2);
      assert.deepEqual([await target.accountNamed('acme'), await target.accountNamed('Acme')], [1, null]);
      await target.close();
    });
  });
}

describe('imports while other processes use the ledger', options, () => {
  test('an import into a missing ledger is refused', async () => {
    await assert.rejects(async () => openSqliteImport(temporaryFile()), { message: /^There is no ledger at/ });
    const database = at(await server.createDatabase()) as Parameters<typeof openPostgresImport>[0];
    await assert.rejects(openPostgresImport(database), { message: /^There is no ledger in the database/ });
  });

  test('two concurrent runs of the same import grant no row twice on PostgreSQL, and a server can write at the same time', async (t: TestContext) => {
    const ledger = await newDatabase();
    const { ledger: store } = await ledger.open();
    t.after(() => store.close());
    const rows = rowsOf(3_000);
    const ada = new EndUser(1, 0);
    const runs = [run(ledger, rows), run(ledger, rows)].map((ended) => ended.catch((error: Error) => error));
    for (let times = 0; times < 20; times++) await store.write([ada.add(1), ada.subtract(1)], () => {});
    const results = (await Promise.all(runs)) as (LedgerImport | Error)[];
    const stopped = results.filter((result) => result instanceof Error);
    for (const { name, message } of stopped)
      assert.match(`${name} ${message}`, /^CannotOpen Another process has continued this import/);
    if (stopped.length === 2) await run(ledger, rows);
    const { transactions } = await store.transactions(new EndUser(1, 1).key, {
      from: null,
      limit: 9,
      within: EVERYTHING,
    });
    assert.equal(transactions.length, 2);
    assert.equal((await auditAt(ledger.url)).postings, 3_000 + 20 * 2);
  });

  test('a failed COMMIT stops an import into PostgreSQL, and the import can be continued when COMMITs succeed again', async () => {
    const ledger = await newDatabase();
    const rows = rowsOf(300);
    const database = ledger.url.slice(ledger.url.lastIndexOf('/') + 1);
    await server.query(
      `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$;
       CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON scrip.postings DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION public.fail()`,
      database,
    );
    await assert.rejects(run(ledger, rows), {
      name: 'ImportStopped',
      message: /^The import stopped after 0 of 300 rows/,
    });
    await server.query('DROP TRIGGER failing ON scrip.postings', database);
    assert.equal((await run(ledger, rows)).granted, 300);
    assert.equal((await auditAt(ledger.url)).postings, 300);
  });
});

test('an interrupted import can be continued in a copy of the ledger', options, async () => {
  const rows = rowsOf(600);
  const ledger = await newFile();
  await assert.rejects(run(ledger, rows, { killedAfter: 300 }), Killed);
  const url = await server.createDatabase();
  await copyDatabase(at(ledger.url), at(url), () => {});
  const copy: Ledger = {
    ...ledger,
    url,
    open: () => openPostgresStore(optionsFor(url)),
    openImport: () => openPostgresImport(optionsFor(url)),
  };
  await run(copy, rows);
  assert.deepEqual(await histories(copy, 300), expected(rows, 300));
});

test('an imported row that expires in an hour is valid for a day, because its validity is rounded up to whole days', async () => {
  const ledger = await newFile();
  await run(ledger, rowsOf(1, { validity: { expiresAt: NOON + HOUR_MS } }));
  ledger.wall = NOON + DAY_MS - 1;
  assert.equal(await reading(ledger, (store) => balanceOf(store, new EndUser(1, 0))), 1);
  ledger.wall = NOON + DAY_MS;
  assert.equal(await reading(ledger, (store) => balanceOf(store, new EndUser(1, 0))), 0);
});
