// Opening a ledger in PostgreSQL: a server that may lose what it confirmed is refused, a schema of a newer version too,
// and however many open at once, the schema is made once.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { apiKeySecret, hashOf, SECRET_BYTES } from '../../src/accounts/api-key.ts';
import { ACCEPTED } from '../../src/ledger/command.ts';
import { transactionId } from '../../src/ledger/transaction-id.ts';
import type { PostgresOptions } from '../../src/store/postgres/connection.ts';
import { keyOf } from '../../src/store/postgres/key.ts';
import { ledger } from '../../src/store/postgres/migrations/0001-ledger.ts';
import { openPostgresStore, openPostgresStoreBeside } from '../../src/store/postgres/postgres-store.ts';
import { CannotOpen } from '../../src/store/store.ts';
import { balanceOf, EndUser } from '../store/temporary-ledger.ts';
import { OPTIONS } from './moved-clock.ts';
import { PostgresServer } from './postgres-server.ts';

const SAFE: Omit<PostgresOptions, 'url'> = { ...OPTIONS, acceptUnsafe: false };
const ada = new EndUser(1, 1);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const nameOf = (url: string) => new URL(url).pathname.slice(1);

function cannotOpen(sentence: string | RegExp) {
  return (error: unknown) => {
    assert(error instanceof CannotOpen);
    if (typeof sentence === 'string') assert.equal(error.message, sentence);
    else assert.match(error.message, sentence);
    return true;
  };
}

describe('a server that may lose what it has confirmed', () => {
  const refused = (settings: string) =>
    `PostgreSQL runs with ${settings}, so it may lose what it has confirmed; set it to on, or accept the loss with DATABASE_ACCEPT_UNSAFE=yes.`;

  test('is refused for synchronous_commit, and does when the loss is accepted', async () => {
    const url = await server.createDatabase();
    await server.query(`ALTER DATABASE ${nameOf(url)} SET synchronous_commit = off`);
    await assert.rejects(openPostgresStore({ ...SAFE, url }), cannotOpen(refused('synchronous_commit = off')));
    const store = await openPostgresStore({ ...SAFE, url, acceptUnsafe: true });
    await store.write([ada.add(5)]);
    assert.equal(await balanceOf(store, ada), 5);
    await store.close();
  });

  test('is refused for fsync, and does when the loss is accepted', async () => {
    const unsafe = await PostgresServer.start({ fsync: 'off' });
    try {
      const url = await unsafe.createDatabase();
      await assert.rejects(openPostgresStore({ ...SAFE, url }), cannotOpen(refused('fsync = off')));
      const { rows } = await unsafe.query(`SELECT to_regnamespace('scrip') AS schema`, nameOf(url));
      assert.deepEqual(rows, [{ schema: null }], 'who is refused has made nothing');
      await (await openPostgresStore({ ...SAFE, url, acceptUnsafe: true })).close();
    } finally {
      await unsafe.remove();
    }
  });

  test('is what the one that this file runs is not', async () => {
    await (await openPostgresStore({ ...SAFE, url: await server.createDatabase() })).close();
  });
});

describe('the schema', () => {
  test('of a newer version is refused, and left as it is', async () => {
    const url = await server.createDatabase();
    await (await openPostgresStore({ ...SAFE, url })).close();
    const known = await migrationsOf(url);
    const newer = known.length + 1;
    await server.query(`INSERT INTO scrip.migrations VALUES (${newer}, now())`, nameOf(url));
    const refusal = `The ledger in this database was written by a newer Scrip (schema ${newer}; this one knows up to ${known.length}); start that version, or point DATABASE_URL elsewhere.`;
    await assert.rejects(openPostgresStore({ ...SAFE, url }), cannotOpen(refusal));
    await assert.rejects(openPostgresStoreBeside({ ...SAFE, url }, { create: true }), cannotOpen(refusal));
    assert.deepEqual(await migrationsOf(url), [...known, newer]);
  });

  test('is made once, also when three open a new database at once', async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ ...SAFE, url })));
    await Promise.all(stores.map((store) => store.write([ada.add(5)])));
    for (const store of stores) assert.equal(await balanceOf(store, ada), 15);
    await Promise.all(stores.map((store) => store.close()));
    const numbers = await migrationsOf(url);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
  });

  test('of the first version is brought up to date, and goes on behind what it holds', async () => {
    const url = await server.createDatabase();
    const hour = 3_600_000;
    const [bucket, account, endUser] = keyOf(ada.key);
    const start = Date.now() - hour;
    const tail = '00000000cafe';
    const cycle = transactionId({ at: start, sequence: 1, tail });
    const last = transactionId({ at: Date.now() + hour, sequence: 5, tail });
    const sql = `CREATE SCHEMA scrip; ${ledger};
      CREATE TABLE scrip.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL);
      INSERT INTO scrip.migrations VALUES (1, now());
      INSERT INTO scrip.end_users VALUES (${bucket}, ${account}, '${endUser}', '${last}');
      INSERT INTO scrip.cycles VALUES (${bucket}, ${account}, '${endUser}', ${start + 31 * 24 * hour}, '${cycle}', 0, 'one-time', 'active', 10, 10, ${start}, 31)`;
    await server.query(sql, nameOf(url));
    const store = await openPostgresStore({ ...SAFE, url });
    assert.deepEqual(await store.write([ada.subtract(3)]), [ACCEPTED]);
    const { transactions } = await store.transactions(ada.key, { from: null, limit: 10 });
    assert(transactions[0] && transactions[0].id > last, 'it comes behind the latest one, an hour ahead');
    assert.equal(await balanceOf(store, ada), 7);
    await store.close();
  });

  test('is not made again, and what it holds stays', async () => {
    const url = await server.createDatabase();
    for (const balance of [5, 10]) {
      const store = await openPostgresStore({ ...SAFE, url });
      await store.write([ada.add(5)]);
      assert.equal(await balanceOf(store, ada), balance);
      await store.close();
    }
  });

  test('is not made by who only looks', async () => {
    const url = await server.createDatabase();
    await assert.rejects(
      openPostgresStoreBeside({ ...SAFE, url }, { create: false }),
      cannotOpen('There is no ledger of this version in the database; check DATABASE_URL, or run `scrip migrate`.'),
    );
    const { rows } = await server.query(`SELECT to_regnamespace('scrip') AS schema`, nameOf(url));
    assert.deepEqual(rows, [{ schema: null }]);
  });
});

test('a server that cannot be reached is named as the reason', async () => {
  const url = 'postgres://postgres@127.0.0.1:1/scrip';
  await assert.rejects(openPostgresStore({ ...SAFE, url }), cannotOpen(/^PostgreSQL cannot be used \(.*DATABASE_URL/));
});

test('a key that is made beside a running store opens it at once, and when revoked no more', async () => {
  const url = await server.createDatabase();
  const running = await openPostgresStore({ ...SAFE, url });
  const beside = await openPostgresStoreBeside({ ...SAFE, url }, { create: false });
  const secret = apiKeySecret('write', randomBytes(SECRET_BYTES));
  const key = await beside.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret });
  assert.deepEqual(await running.apiKeys.find(hashOf(secret)), key);
  assert.equal(await beside.apiKeys.revoke(key.id), true);
  assert.equal(await running.apiKeys.find(hashOf(secret)), null);
  await Promise.all([running.close(), beside.close()]);
});

test('keys that are made at once have numbers of their own, and one account by name', async () => {
  const url = await server.createDatabase();
  const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ ...SAFE, url })));
  const made = stores.flatMap(({ apiKeys }) =>
    [1, 2, 3, 4].map(() => {
      const secret = apiKeySecret('read', randomBytes(SECRET_BYTES));
      return apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret });
    }),
  );
  const keys = await Promise.all(made);
  assert.deepEqual(
    keys.map(({ id }) => id).toSorted((a, b) => a - b),
    Array.from({ length: 12 }, (_, index) => index + 1),
  );
  assert.equal(new Set(keys.map(({ account }) => account)).size, 1);
  await Promise.all(stores.map((store) => store.close()));
});

async function migrationsOf(url: string): Promise<number[]> {
  const { rows } = await server.query('SELECT number FROM scrip.migrations ORDER BY number', nameOf(url));
  return rows.map(({ number }) => number);
}
