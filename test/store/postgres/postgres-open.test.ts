// Tests that Scrip refuses a PostgreSQL server that may lose confirmed writes, and a schema of another version. If
// several processes open a new database at the same time, its schema is created only once.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { apiKeySecret, hashOf, SECRET_BYTES } from '../../../src/accounts/api-key.ts';
import type { KeyStore } from '../../../src/store/key-store.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { openPostgresTools } from '../../../src/store/postgres/tools/ledger-tools.ts';
import { CannotOpen } from '../../../src/store/store-fault.ts';
import type { Stores } from '../../../src/store/stores.ts';
import { Running } from '../../cli/scrip-command.ts';
import { balanceOf, EndUser } from '../temporary-ledger.ts';
import { optionsFor } from './postgres-ledger.ts';
import { PostgresServer } from './postgres-server.ts';

const ada = new EndUser(1, 1);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const nameOf = (url: string) => new URL(url).pathname.slice(1);
const safe = (url: string) => optionsFor(url, { acceptUnsafe: false });

function open(url: string): Promise<Stores> {
  return openPostgresStore(safe(url));
}

async function close(...stores: readonly Stores[]): Promise<void> {
  await Promise.all(stores.map(({ ledger }) => ledger.close()));
}

async function add({ ledger }: Stores): Promise<void> {
  await ledger.write([ada.add(5)], () => {});
}

function cannotOpen(sentence: string | RegExp) {
  return (error: unknown) => {
    assert(error instanceof CannotOpen);
    if (typeof sentence === 'string') assert.equal(error.message, sentence);
    else assert.match(error.message, sentence);
    return true;
  };
}

describe('a PostgreSQL database with unsuitable settings', () => {
  test('a database whose encoding is not UTF8 is refused, because it could not store every note', async () => {
    const url = await server.createDatabase();
    const name = `${nameOf(url)}_ascii`;
    await server.query(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    const refused = /^The database has the encoding SQL_ASCII; create a database with ENCODING 'UTF8'/;
    await assert.rejects(open(url.replace(nameOf(url), name)), cannotOpen(refused));
  });

  test('a database with array_nulls off is refused, because it would store nulls as the text NULL', async () => {
    const url = await server.createDatabase();
    await server.query(`ALTER DATABASE ${nameOf(url)} SET array_nulls = off`);
    await assert.rejects(open(url), cannotOpen(/^PostgreSQL runs with array_nulls = off; set array_nulls to on/));
  });

  test('a role whose client_min_messages hides warnings is refused, because PostgreSQL reports an unconfirmed COMMIT as a warning', async () => {
    const url = await server.createDatabase();
    await server.query(`ALTER DATABASE ${nameOf(url)} SET client_min_messages = error`);
    await assert.rejects(open(url), cannotOpen(/^PostgreSQL runs with client_min_messages = error; set client_min/));
  });

  test("the connections of a server have Scrip's application_name, even if the URL contains another one", async () => {
    const url = await server.createDatabase();
    const stores = await open(`${url}?application_name=other&application_name=third`);
    const { rows } = await server.query(
      `SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = '${nameOf(url)}'`,
    );
    await close(stores);
    assert.deepEqual(rows, [{ application_name: 'scrip' }]);
  });

  test('a ledger is created in an existing schema by a role that may not create schemas', async () => {
    const url = await server.createDatabase();
    const role = `${nameOf(url)}_app`;
    await server.query(`CREATE ROLE ${role} LOGIN`);
    await server.query(`CREATE SCHEMA scrip AUTHORIZATION ${role}`, nameOf(url));
    const asRole = new URL(url);
    asRole.username = role;
    const stores = await open(asRole.href);
    await add(stores);
    await close(stores);
  });
});

test('a process that cannot read the event log exits with an explanation', async () => {
  const url = await server.createDatabase();
  await close(await open(url));
  const role = `${nameOf(url)}_app`;
  await server.query(`CREATE ROLE ${role} LOGIN`);
  await server.query(
    `GRANT ALL ON SCHEMA scrip TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA scrip TO ${role};
     REVOKE ALL ON scrip.event_log FROM ${role}`,
    nameOf(url),
  );
  const asRole = new URL(url);
  asRole.username = role;
  const { code, stderr } = await new Running(['serve'], { DATABASE_URL: asRole.href, PORT: '0' }).ended;
  assert.match(stderr, /^Cannot open the ledger in PostgreSQL \(permission denied for table event_log\)/);
  assert.equal(code, 1);
});

describe('a PostgreSQL server that may lose confirmed writes', () => {
  const refused = (settings: string) =>
    `PostgreSQL runs with ${settings}, so a crash can lose confirmed writes; change PostgreSQL's configuration, or accept the risk with DATABASE_ACCEPT_UNSAFE=yes.`;

  test('a PostgreSQL server with synchronous_commit off is refused unless the risk is accepted', async () => {
    const url = await server.createDatabase();
    await server.query(`ALTER DATABASE ${nameOf(url)} SET synchronous_commit = off`);
    await assert.rejects(open(url), cannotOpen(refused('synchronous_commit = off')));
    const stores = await openPostgresStore(optionsFor(url, { acceptUnsafe: true }));
    await add(stores);
    assert.equal(await balanceOf(stores.ledger, ada), 5);
    await close(stores);
  });

  test('a PostgreSQL server with fsync off is refused unless the risk is accepted, and a refusal creates nothing', async () => {
    const unsafe = await PostgresServer.start({ fsync: 'off' });
    try {
      const url = await unsafe.createDatabase();
      await assert.rejects(open(url), cannotOpen(refused('fsync = off')));
      const { rows } = await unsafe.query(`SELECT to_regnamespace('scrip') AS schema`, nameOf(url));
      assert.deepEqual(rows, [{ schema: null }]);
      await close(await openPostgresStore(optionsFor(url, { acceptUnsafe: true })));
    } finally {
      await unsafe.remove();
    }
  });

  test('a PostgreSQL server with default settings is accepted', async () => {
    await close(await open(await server.createDatabase()));
  });
});

describe('the schema of a ledger in PostgreSQL', () => {
  test('a ledger in PostgreSQL with a newer schema is refused and not changed', async () => {
    const url = await server.createDatabase();
    await close(await open(url));
    const latest = (await migrationsOf(url)).at(-1) as number;
    await server.query(`INSERT INTO scrip.migrations VALUES (${latest + 1}, now())`, nameOf(url));
    const refusal = `The ledger in this database was written by a newer version of Scrip (schema ${latest + 1}; this version supports up to ${latest}); use the newer version, or point DATABASE_URL elsewhere.`;
    await assert.rejects(open(url), cannotOpen(refusal));
    await assert.rejects(openPostgresTools(safe(url), { create: true }), cannotOpen(refusal));
    assert.deepEqual(await migrationsOf(url), [latest, latest + 1]);
  });

  test('a ledger that was created in PostgreSQL before the first release of Scrip is refused and not changed', async () => {
    const url = await server.createDatabase();
    await server.query(
      `CREATE SCHEMA scrip; CREATE TABLE scrip.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL);
       INSERT INTO scrip.migrations SELECT number, now() FROM generate_series(1, 6) AS number`,
      nameOf(url),
    );
    const refusal =
      'The ledger in this database was written before the first release of Scrip (schema 6) and cannot be read; point DATABASE_URL at another database.';
    await assert.rejects(open(url), cannotOpen(refusal));
    await assert.rejects(openPostgresTools(safe(url), { create: true }), cannotOpen(refusal));
    const { rows } = await server.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'scrip'`, nameOf(url));
    assert.deepEqual(rows, [{ tablename: 'migrations' }]);
  });

  test('the schema of a new PostgreSQL database is created once, even if three processes open the database at the same time', async () => {
    const url = await server.createDatabase();
    const processes = await Promise.all([1, 2, 3].map(() => open(url)));
    await Promise.all(processes.map(add));
    for (const { ledger } of processes) assert.equal(await balanceOf(ledger, ada), 15);
    await close(...processes);
    assert.equal((await migrationsOf(url)).length, 1);
  });

  test('a ledger in PostgreSQL keeps its data when it is closed and reopened', async () => {
    const url = await server.createDatabase();
    for (const balance of [5, 10]) {
      const stores = await open(url);
      await add(stores);
      assert.equal(await balanceOf(stores.ledger, ada), balance);
      await close(stores);
    }
  });

  test('a `scrip` command that must not create a ledger leaves an empty PostgreSQL database unchanged', async () => {
    const url = await server.createDatabase();
    await assert.rejects(
      openPostgresTools(safe(url), { create: false }),
      cannotOpen('There is no ledger in the database; check DATABASE_URL, or run `scrip migrate` to create a ledger.'),
    );
    const { rows } = await server.query(`SELECT to_regnamespace('scrip') AS schema`, nameOf(url));
    assert.deepEqual(rows, [{ schema: null }]);
  });
});

test('if PostgreSQL requests a password and none is set, a `scrip` command prints the reason and exits', {
  timeout: 30_000,
}, async (t) => {
  await server.query(`CREATE ROLE guarded LOGIN PASSWORD 'hunter2'`);
  const rules = join(server.data, 'pg_hba.conf');
  writeFileSync(rules, `host all guarded all scram-sha-256\n${readFileSync(rules, 'utf8')}`);
  await server.query('SELECT pg_reload_conf()');
  const url = (await server.createDatabase()).replace('postgres@', 'guarded@');
  // If the command left its connection open, it would exit only after 60 s, when the server closes the connection.
  const listing = new Running(['key', 'list'], { DATABASE_URL: url });
  t.after(() => listing.kill('SIGKILL'));
  const { code, stderr } = await listing.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^Cannot open the ledger in PostgreSQL \([^\n]*password[^\n]*\); check DATABASE_URL[^\n]*\n$/);
});

test('opening a ledger on a PostgreSQL server that cannot be reached fails with a message about PostgreSQL', async () => {
  const refusal = cannotOpen(/^Cannot open the ledger in PostgreSQL \(.*DATABASE_URL/);
  await assert.rejects(open('postgres://postgres@127.0.0.1:1/scrip'), refusal);
});

test('if a `scrip` command creates or revokes an API key on PostgreSQL, a running server sees the change at its next lookup of the key', async () => {
  const url = await server.createDatabase();
  const running = await open(url);
  const beside = await openPostgresTools(safe(url), { create: false });
  const secret = apiKeySecret('write', randomBytes(SECRET_BYTES));
  const key = await beside.keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret, name: '' });
  assert.deepEqual(await running.keys.find(hashOf(secret)), key);
  assert.equal(await beside.keys.revoke(key.id), true);
  assert.equal(await running.keys.find(hashOf(secret)), null);
  await Promise.all([close(running), beside.tools.close()]);
});

test('if three processes create API keys for the same new account on PostgreSQL at the same time, only one account is created, and the keys have unique IDs', async () => {
  const url = await server.createDatabase();
  const processes = await Promise.all([1, 2, 3].map(() => open(url)));
  const create = (keys: KeyStore) => {
    const secret = apiKeySecret('read', randomBytes(SECRET_BYTES));
    return keys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret, name: '' });
  };
  const made = await Promise.all(processes.flatMap(({ keys }) => [1, 2, 3, 4].map(() => create(keys))));
  assert.deepEqual(
    made.map(({ id }) => id).toSorted((a, b) => a - b),
    Array.from({ length: 12 }, (_, index) => index + 1),
  );
  assert.equal(new Set(made.map(({ account }) => account)).size, 1);
  await close(...processes);
});

async function migrationsOf(url: string): Promise<number[]> {
  const { rows } = await server.query('SELECT number FROM scrip.migrations ORDER BY number', nameOf(url));
  return rows.map(({ number }) => number);
}
