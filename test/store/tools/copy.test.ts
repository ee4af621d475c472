// Tests copying a whole ledger to another store. A ledger in use is not copied, and a copy never overwrites another
// ledger.

import assert from 'node:assert/strict';
import { chmodSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashOf } from '../../../src/accounts/api-key.ts';
import type { Database } from '../../../src/config.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { copyDatabase, openTools } from '../../../src/open-tools.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { backUpFile } from '../../../src/store/sqlite/tools/backup.ts';
import type { Stores } from '../../../src/store/stores.ts';
import { newKey } from '../../load/server-process.ts';
import { byHand, otherProcess, readByHand, UNPRIVILEGED } from '../outside.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { openFor, openInPlace, SMALL } from '../sqlite/sqlite-ledger.ts';
import {
  balanceOf,
  EndUser,
  keyed,
  PEOPLE,
  problemsOf,
  replayed,
  temporaryFile,
  temporaryFolder,
  transactionsOf,
} from '../temporary-ledger.ts';
import {
  assertCommandRefused,
  assertRefused,
  at,
  auditAt,
  copying,
  fileAt,
  makeLedger,
  makeMany,
  openSource,
  quietly,
  sha256Of,
} from './copied-ledger.ts';

const GROUP_MS_MAX = 240_000;
const options = { timeout: GROUP_MS_MAX };

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const postgresAt = (url: string) => at(url) as Extract<Database, { kind: 'postgres' }>;

async function clockOf(url: string): Promise<number> {
  const source = await openSource(url);
  try {
    return (await source.clock()).at;
  } finally {
    await source.close();
  }
}

async function query(url: string, text: string): Promise<void> {
  await server.query(text, url.slice(url.lastIndexOf('/') + 1));
}

/** PostgreSQL needs time to end the backends of closed connections. */
async function disconnected(): Promise<void> {
  await sleep(200);
}

async function seen({ ledger, keys }: Stores): Promise<unknown> {
  const users = Object.values(PEOPLE);
  const balances = users.map(async (user) => [await balanceOf(ledger, user), await transactionsOf(ledger, user)]);
  return [await Promise.all(balances), await keys.list()];
}

describe('copies', options, () => {
  test('a ledger that is copied from a file to PostgreSQL, to another database and back to a file is unchanged', async () => {
    const { file, secret, revoked } = await makeLedger();
    byHand(file, 'UPDATE accounts SET last_endpoint_id = 7 WHERE account = 2');
    const [first, second, back] = [await server.createDatabase(), await server.createDatabase(), temporaryFile()];
    const { sha256, ...report } = await copyDatabase(at(fileAt(file)), at(first), quietly);
    assert.deepEqual(
      [report.accounts, report.keys, report.endUsers, report.resumedAfter],
      [2, 2, Object.keys(PEOPLE).length, 0],
    );
    await copyDatabase(at(first), at(second), quietly);
    await copyDatabase(at(second), at(fileAt(back)), quietly);
    for (const url of [fileAt(file), first, second, fileAt(back)]) assert.equal(await sha256Of(url), sha256);
    const endpointIds = readByHand(back, 'SELECT last_endpoint_id FROM accounts ORDER BY account');
    assert.deepEqual(
      endpointIds.map((row) => row.last_endpoint_id),
      [0, 7],
      'IDs of removed webhook endpoints are not reused in a copy',
    );

    const later = Date.now() + DAY_MS;
    const stores = [
      await openSqliteStore(file, () => later),
      await openPostgresStore({ ...postgresAt(second), now: `${later}::bigint` }),
      await openSqliteStore(back, () => later),
    ];
    const [original, ...copies] = await Promise.all(stores.map(seen));
    for (const copy of copies) assert.deepEqual(copy, original);
    for (const { keys, ledger } of stores) {
      assert.deepEqual(await keys.find(hashOf(secret)), { id: 1, account: 1, scope: 'write' });
      assert.equal(await keys.find(hashOf(revoked)), null);
      const commands = [PEOPLE.oneTime.add(3), PEOPLE.renewing.settle(), PEOPLE.rich.add(1)];
      await ledger.write(commands, () => {});
      await ledger.close();
    }
    for (const url of [fileAt(file), second, fileAt(back)]) assert.deepEqual(problemsOf(await auditAt(url)), []);
  });

  test('a copy of a file has the same clock and the same order of postings as the file', async () => {
    const { file } = await makeLedger();
    const to = temporaryFile();
    await copyDatabase(at(fileAt(file)), at(fileAt(to)), quietly);
    const dump = (path: string) => {
      const db = new DatabaseSync(path, { readOnly: true });
      const rows = [
        db.prepare('SELECT at, sequence, checksum FROM clock').all(),
        db.prepare('SELECT hex(transaction_id), hex(cycle_id) FROM postings ORDER BY end_user, account, posting').all(),
        db.prepare('SELECT * FROM balances WHERE latest_posting IS NULL').all(),
      ];
      db.close();
      return rows;
    };
    assert.deepEqual(dump(to), dump(file));
  });

  test('a copy of a ledger has the same balances, even if the server was killed while balances were pending', async (t) => {
    const { file } = await makeLedger();
    const ledger = await openInPlace(t, file, { ...SMALL, wall: Date.now() });
    const users = Array.from({ length: 9 }, (_, index) => new EndUser(1, index));
    for (let round = 0; round < 5; round++)
      await ledger.write(users.map((user) => (round % 2 ? user.subtract(1) : user.add(4))));
    await ledger.crash();
    const balances = await Promise.all(users.map((user) => balanceOf(ledger, user)));
    await ledger.crash();
    await ledger.close();
    const [there, back] = [await server.createDatabase(), temporaryFile()];
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    const copy = await openInPlace(t, back, { wall: Date.now() });
    assert.deepEqual(await Promise.all(users.map((user) => balanceOf(copy, user))), balances);
  });

  test('a copy includes the idempotency records, even those of refused requests for unknown end users', async () => {
    const [file, back, database] = [temporaryFile(), temporaryFile(), await server.createDatabase()];
    const [ada, unknown] = [new EndUser(1, 1), new EndUser(2, 7)];
    const commands = (requestId: string) =>
      [ada.add(10), unknown.subtract(1)].map((command) => keyed(command, `ünsafe "key" \\ 1`, requestId));
    const { ledger } = await openSqliteStore(file);
    const outcomes = await ledger.write(commands('first'), () => {});
    const many = Array.from({ length: 1_100 }, (_, index) => keyed(new EndUser(3, index).add(1), 'key', 'many'));
    await ledger.write(many, () => {});
    await ledger.close();
    await copyDatabase(at(fileAt(file)), at(database), quietly);
    await copyDatabase(at(database), at(fileAt(back)), quietly);
    for (const copy of [await openPostgresStore(postgresAt(database)), await openSqliteStore(back)]) {
      const expected = outcomes.map((outcome) => outcome && replayed(outcome, 'first'));
      assert.deepEqual(await copy.ledger.write(commands('second'), () => {}), expected);
      const again = await copy.ledger.write(many, () => {});
      assert(again.every((outcome) => outcome?.replayOf === 'many'));
      await copy.ledger.close();
    }
  });

  test('a copy of an empty ledger is an empty ledger', async () => {
    const [file, to] = [temporaryFile(), await server.createDatabase()];
    await (await openTools(at(fileAt(file)))).tools.close();
    await copyDatabase(at(fileAt(file)), at(to), quietly);
    assert.equal(await sha256Of(to), await sha256Of(fileAt(file)));
  });

  test('a copy of a backup does not change the backup, and the backup can be in a folder without write permission', async (t) => {
    const { file } = await makeLedger();
    const backup = join(temporaryFolder(), 'backup.db');
    const { endUsers, postings } = await backUpFile(file, backup, quietly);
    const before = readFileSync(backup);
    await copyDatabase(at(fileAt(backup)), at(fileAt(temporaryFile())), quietly);
    assert(readFileSync(backup).equals(before));
    rmSync(`${backup}.lock`);
    chmodSync(backup, 0o444);
    chmodSync(dirname(backup), 0o555);
    t.after(() => chmodSync(dirname(backup), 0o700));
    const counts = await otherProcess(t, 'countForCopy', backup, UNPRIVILEGED).answer();
    assert.deepEqual(counts, { endUsers, postings });
  });

  test('the clock of a copy is not earlier than the clock of its source, even if that clock is ahead of real time', async () => {
    const { file } = await makeLedger();
    const [there, back] = [await server.createDatabase(), temporaryFile()];
    const ahead = Date.now() + 400 * DAY_MS;
    await (await openSqliteStore(file, () => ahead)).ledger.close();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    for (const url of [fileAt(file), there, fileAt(back)]) assert.equal(await clockOf(url), ahead);
  });

  test("a copy preserves the order of an end user's postings, even if they do not fit in one batch", async (t) => {
    const [file, there, back] = [temporaryFile(), await server.createDatabase(), temporaryFile()];
    const ledger = await openFor(t, file);
    const ada = new EndUser(1, 1);
    await ledger.write([ada.add(1_000_000)]);
    for (let batch = 0; batch < 3; batch++)
      await ledger.write(Array.from({ length: 500 }, (_, index) => ada.subtract(index + 1)));
    const transactions = await transactionsOf(ledger, ada);
    await ledger.close();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    await copyDatabase(at(there), at(fileAt(back)), quietly);
    assert.deepEqual(await transactionsOf(await openFor(t, back), ada), transactions);
  });

  test('a copy reports its progress, and `scrip copy` prints the progress', async () => {
    const [file, there] = [temporaryFile(), await server.createDatabase()];
    await makeMany(file, 1_500);
    const { code, stdout, stderr } = await copying(fileAt(file), there);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /1500 end users and 3000 postings/);
    assert.match(stderr, /^copying: \d+ of 3000 postings, \d+%\n[\s\S]*comparing: 6000 of 6000 postings, 100%\n$/);
  });
});

describe('refused copies', options, () => {
  test('a ledger is not copied while a server has the source or the destination open', async () => {
    const { file } = await makeLedger();
    const [there, empty] = [await server.createDatabase(), await server.createDatabase()];
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    const isFileInUse = /is in use by another Scrip process; stop that process first/;
    await whileOpen(await openSqliteStore(file), () =>
      assertRefused(fileAt(file), fileAt(temporaryFile()), isFileInUse),
    );
    const says = /is in use by another Scrip process; first stop every server that uses it/;
    const open = (url: string) => openPostgresStore(postgresAt(url));
    await whileOpen(await open(there), () => assertRefused(there, fileAt(temporaryFile()), says));
    await whileOpen(await open(empty), () => assertRefused(fileAt(file), empty, says));
  });

  test('a copy does not overwrite another ledger, even if that ledger contains only an API key', async () => {
    const { file } = await makeLedger();
    const [there, other] = [await server.createDatabase(), temporaryFile()];
    for (const url of [there, fileAt(other)]) {
      await newKey(url, 'Other');
      await disconnected();
      await assertRefused(fileAt(file), url, /There is already a ledger at/);
    }
  });

  test('a copy with an invalid source or destination is refused with one sentence that contains no password', async () => {
    const { file } = await makeLedger();
    const missing = await server.createDatabase();
    await assertRefused(fileAt(temporaryFile()), fileAt(temporaryFile()), /^There is no ledger at .*; check --from/);
    await assertRefused(missing, fileAt(temporaryFile()), /^There is no ledger/);
    for (const same of [file, relative('', file)])
      await assertCommandRefused(fileAt(file), fileAt(same), /must be different ledgers/);
    await assertCommandRefused('mysql://root:hunter2@db', fileAt(file), /^--from must be file:PATH or postgres/);
    await assertCommandRefused(
      fileAt(file),
      'postgres://u:hunter2@127.0.0.1:1/x',
      /^Cannot open the ledger in PostgreSQL (?!.*hunter2)/,
    );
  });

  test('a ledger with invariant violations is not copied, and servers refuse to start on the destination', async () => {
    const { file } = await makeLedger();
    const to = temporaryFile();
    byHand(file, `UPDATE balances SET remaining = remaining - 1 WHERE type = 'recurring' AND remaining > 0`);
    await assertRefused(fileAt(file), fileAt(to), /was not copied: the ledger has problems \(\d+ found/);
    await assert.rejects(openSqliteStore(to), { name: 'CannotOpen', message: /contains an unfinished copy/ });
  });

  test('a copy fails at the end if the source was written to during the copy', async () => {
    const { file } = await makeLedger();
    const there = await server.createDatabase();
    let isDone = false;
    const meanwhile = () => {
      if (!isDone) byHand(file, `UPDATE api_keys SET revoked_at = 1, revoked_by = 'operator' WHERE key_id = 1`);
      isDone = true;
    };
    await assert.rejects(copyDatabase(at(fileAt(file)), at(there), meanwhile), /changed while it was being copied/);
  });

  test('a database that is being copied cannot be written to, even by a server that the copy did not detect', async () => {
    const { file } = await makeLedger();
    const there = await server.createDatabase();
    await copyDatabase(at(fileAt(file)), at(there), quietly);
    const source = await openSource(there);
    const write = `SET lock_timeout = '100ms'; UPDATE scrip.cycles SET remaining = 0`;
    await assert.rejects(query(there, write), /lock timeout/);
    await source.close();
  });
});

async function whileOpen({ ledger }: Stores, work: () => Promise<void>): Promise<void> {
  await work();
  await ledger.close();
  await disconnected();
}
