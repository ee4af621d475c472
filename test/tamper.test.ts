// Tamper evidence: somebody with the file, or with SQL, changes what has happened. Each change is made on a ledger
// without chains, on one with chains, and on one against whose digest it is then held. The first is the control: what
// the audit alone does not see is exactly what chains are for.

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { copyDatabase, openBeside } from '../src/app.ts';
import { databaseAt } from '../src/config.ts';
import type { Command } from '../src/ledger/command.ts';
import type { PostingsDigest } from '../src/store/ledger-digest.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../src/store/store.ts';
import { OPTIONS } from './postgres/moved-clock.ts';
import { PostgresServer } from './postgres/postgres-server.ts';
import { byHand } from './store/outside.ts';
import { ledgerAt, scrip } from './store/scrip-command.ts';
import { auditOf, EndUser, makeHistory, PEOPLE, temporaryFile, temporaryFolder } from './store/temporary-ledger.ts';

let file = '';
let server: PostgresServer;
before(async () => {
  file = temporaryFile();
  await makeHistory(file);
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

const WITHOUT_CHAINS = 'UPDATE holdings SET chain = NULL;';
const ADA = "account = 1 AND substr(hex(end_user), 32) = '1'";
const LAST = `posting = (SELECT latest_posting FROM holdings WHERE ${ADA} AND type = 'end-user')`;
const flipTail = (column: string) =>
  `CAST(substr(${column}, 1, 15) || CASE substr(hex(${column}), 31) WHEN '01' THEN x'02' ELSE x'01' END AS BLOB)`;

interface Tampering {
  readonly what: string;
  readonly sql: string;
  /** By which means it is found: `audit` by what must agree anyway, `chain` by the head that is stored, `digest` by nothing else. */
  readonly foundBy: 'audit' | 'chain' | 'digest';
}

const TAMPERINGS: readonly Tampering[] = [
  { what: 'another API key did it', sql: `UPDATE postings SET actor = 'key:9' WHERE ${LAST}`, foundBy: 'chain' },
  {
    what: 'a note says something else',
    sql: `UPDATE postings SET note = 'x' WHERE note IS NOT NULL`,
    foundBy: 'chain',
  },
  { what: 'a note is gone', sql: `UPDATE postings SET note = NULL WHERE note IS NOT NULL`, foundBy: 'chain' },
  {
    what: 'a transaction has another random tail',
    sql: `UPDATE postings SET transaction_id = ${flipTail('transaction_id')} WHERE ${LAST}`,
    foundBy: 'chain',
  },
  {
    what: 'a subtraction names another cycle',
    sql: `UPDATE postings SET cycle_id = ${flipTail('cycle_id')} WHERE ${LAST}`,
    foundBy: 'audit',
  },
  { what: 'another period', sql: `UPDATE postings SET period = period + 1 WHERE ${LAST}`, foundBy: 'audit' },
  { what: 'another kind', sql: `UPDATE postings SET kind = 'stop-cycle' WHERE ${LAST}`, foundBy: 'audit' },
  { what: 'another amount', sql: `UPDATE postings SET amount = amount + 1 WHERE ${LAST}`, foundBy: 'audit' },
  { what: 'another instant', sql: `UPDATE postings SET created_at = created_at + 1 WHERE ${LAST}`, foundBy: 'audit' },
  { what: 'another end', sql: `UPDATE postings SET expires_at = expires_at + 1 WHERE ${LAST}`, foundBy: 'audit' },
  {
    what: 'credits are given back: a subtraction is gone, and all that is added up agrees',
    sql: `CREATE TEMP TABLE gone AS SELECT * FROM postings WHERE ${LAST};
      UPDATE holdings SET latest_posting = (SELECT previous FROM gone), posting_count = posting_count - 1
      WHERE ${ADA} AND type = 'end-user';
      UPDATE holdings SET remaining = remaining - (SELECT amount FROM gone) WHERE ${ADA} AND cycle_id = (SELECT cycle_id FROM gone);
      DELETE FROM postings WHERE posting = (SELECT posting FROM gone); ${addedUp()}`,
    foundBy: 'chain',
  },
  {
    what: 'a subtraction is larger, with what remains',
    sql: `UPDATE postings SET amount = amount - 1 WHERE ${LAST};
      UPDATE holdings SET remaining = remaining - 1 WHERE ${ADA} AND cycle_id = (SELECT cycle_id FROM postings WHERE ${LAST}); ${addedUp()}`,
    foundBy: 'chain',
  },
  {
    what: 'the chain was taken away beforehand',
    sql: `${WITHOUT_CHAINS} UPDATE postings SET actor = 'key:9' WHERE ${LAST}`,
    foundBy: 'digest',
  },
  {
    what: 'an end user has never been there',
    sql: `DELETE FROM postings WHERE ${ADA}; DELETE FROM holdings WHERE ${ADA}; ${addedUp()}`,
    foundBy: 'digest',
  },
];

/** What somebody who knows Scrip does to get the totals to agree again. */
function addedUp(): string {
  return `DELETE FROM recent_movements; DELETE FROM movements;
    INSERT INTO movements SELECT account, series, slot, high, low, count FROM movement_differences;`;
}

for (const { what, sql, foundBy } of TAMPERINGS) {
  test(`${what}: found by the ${foundBy}`, async () => {
    const before = await digestOf(file);
    const control = await verdictOn(tampered(WITHOUT_CHAINS + sql), before);
    assert.deepEqual(control, { audit: foundBy === 'audit', chain: false, digest: true }, 'without chains');
    const { audit, chain, digest } = await verdictOn(tampered(sql), before);
    assert.deepEqual([audit || chain, digest], [foundBy !== 'digest', true], 'with chains');
  });
}

test('a head that was computed anew is found by the digest', async () => {
  const digest = await digestFileOf(file);
  const changed = tampered(`${WITHOUT_CHAINS} UPDATE postings SET actor = 'key:9' WHERE ${LAST}`);
  const added = await scrip(['migrate', '--chains'], ledgerAt(changed));
  assert.match(added.stdout, /^6 chains were added/m);
  assert.equal((await scrip(['verify'], ledgerAt(changed))).code, 0, 'nothing but the digest knows better');
  const { code, stdout } = await scrip(['verify', '--digest', digest], ledgerAt(changed));
  assert.equal(code, 1);
  assert.match(stdout, /^digest of 2026-02-21T12:00:00\.000Z: what happened up to then is no longer what it was/m);
});

test('a ledger that was set back to an older backup is found, and one that went on is not', async () => {
  const backup = temporaryFile();
  copyFileSync(file, backup);
  const grown = temporaryFile();
  copyFileSync(file, grown);
  const store = await openSqliteStore(grown);
  await store.write([PEOPLE.oneTime.add(5), PEOPLE.renewing.renew(), PEOPLE.eternal.renew()]);
  await store.close();
  const digests = join(temporaryFolder(), 'digests');
  writeFileSync(digests, readFileSync(await digestFileOf(file), 'utf8'));
  appendFileSync(digests, readFileSync(await digestFileOf(grown), 'utf8'));
  const verified = await scrip(['verify', '--digest', digests], ledgerAt(grown));
  assert.equal(verified.code, 0, verified.stdout);
  assert.match(verified.stdout, /^It agrees with all 2 digests: /m);
  assert.equal((await scrip(['verify'], ledgerAt(backup))).code, 0, 'an older ledger is whole as well');
  assert.equal((await scrip(['verify', '--digest', digests], ledgerAt(backup))).code, 1);
});

test('a copy to PostgreSQL and back agrees with the digest of its source, and keeps its chains', async () => {
  const digest = await digestFileOf(file);
  const url = await server.createDatabase();
  const back = temporaryFile();
  const [source, database, target] = [`file:${file}`, url, `file:${back}`].map((at) => databaseAt('a test', at, {}));
  assert(source && database && target);
  const quiet = { DATABASE_ACCEPT_UNSAFE: 'yes' };
  await copyDatabase(source, databaseAt('a test', url, quiet), () => {});
  await copyDatabase(database, target, () => {});
  for (const DATABASE_URL of [url, `file:${back}`]) {
    const { code, stdout } = await scrip(['verify', '--digest', digest], { DATABASE_URL, ...quiet });
    assert.equal(code, 0, stdout);
    const store = await openBeside(databaseAt('a test', DATABASE_URL, quiet));
    assert.equal((await store.prove([], () => {})).chained, 6);
    await store.close();
  }
});

test('a file that holds no digests is refused', async () => {
  const other = join(temporaryFolder(), 'digests');
  const [line = ''] = readFileSync(await digestFileOf(file), 'utf8').split('\n');
  for (const text of ['', 'something else\n', `${line}0\n`, `${line}\n${line.replace('at=2026', 'at=2025')}\n`]) {
    writeFileSync(other, text);
    const { code, stderr } = await scrip(['verify', '--digest', other], ledgerAt(file));
    assert.equal(code, 1);
    assert.match(stderr, /holds something else than digests/);
  }
});

test('a ledger whose chain is broken gets no digest', async () => {
  const changed = tampered(`UPDATE postings SET actor = 'key:9' WHERE ${LAST}`);
  const { code, stdout, stderr } = await scrip(['digest'], ledgerAt(changed));
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^There is no digest of a ledger that is broken \(its postings lead to another head/);
});

test('while chains are not kept they end, and are whole again once they were added', async () => {
  const grown = temporaryFile();
  copyFileSync(file, grown);
  const chained = async (isChained: boolean, index: number) => {
    const store = await openSqliteStore(grown, undefined, { isChained });
    await store.write([PEOPLE.oneTime.add(5), new EndUser(1, index).add(1)]);
    const proof = await store.prove([], (finding) => assert.fail(finding.message));
    await store.close();
    return `${proof.chained} of ${proof.endUsers}`;
  };
  assert.equal(await chained(false, 100), '5 of 7');
  assert.equal(await chained(true, 101), '6 of 8');
  assert.match((await scrip(['migrate', '--chains'], ledgerAt(grown))).stdout, /^2 chains were added/m);
  assert.equal(await chained(true, 102), '9 of 9');
});

test('on PostgreSQL a change by SQL is found by the chain, where it is kept, and by the digest', async () => {
  const ada = new EndUser(1, 1);
  const found: boolean[] = [];
  for (const chained of [true, false]) {
    const url = await server.createDatabase();
    const store = await openPostgresStore({ ...OPTIONS, url, chained });
    await store.write([ada.add(10), ada.subtract(3), new EndUser(2, 1).add(1)]);
    const { digests } = await store.prove(null, () => {});
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`UPDATE scrip.postings SET actor = 'key:9' WHERE kind = 'subtract'`);
    await client.end();
    assert.deepEqual(await auditOf(store), { findings: [], store: [] }, 'the audit has nothing to compare it with');
    let findings = 0;
    const now = await store.prove([digests[0]?.through as string], () => {
      findings += 1;
    });
    assert.notDeepEqual(now.digests, digests);
    found.push(findings === 1);
    await store.close();
  }
  assert.deepEqual(found, [true, false]);
});

test('chains that were added on PostgreSQL go on, and a process that keeps none ends them', async () => {
  const ada = new EndUser(1, 1);
  const url = await server.createDatabase();
  const proofs: string[] = [];
  for (const [chained, adds] of [
    [false, true],
    [true, false],
    [false, false],
    [true, false],
  ] as const) {
    const store = await openPostgresStore({ ...OPTIONS, url, chained });
    await store.write([ada.add(10), ada.subtract(3)]);
    if (adds) assert.equal(await store.addChains(), 1);
    const { chained: kept } = await store.prove([], (finding) => assert.fail(finding.message));
    proofs.push(`${chained} ${kept}`);
    await store.close();
  }
  assert.deepEqual(proofs, ['false 1', 'true 1', 'false 0', 'true 0']);
});

test('chains that were added on PostgreSQL begin for those who have no posting yet', async () => {
  const url = await server.createDatabase();
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  const refused = { ...bob.subtract(1), idempotency: { key: 'too much', requestId: 'a request' } };
  const unchained = await openPostgresStore({ ...OPTIONS, url });
  await unchained.write([ada.add(1), refused]);
  await unchained.close();
  const store = await openPostgresStore({ ...OPTIONS, url, chained: true });
  assert.equal(await store.addChains(), 1);
  await store.write([bob.add(2)]);
  assert.equal((await store.prove([], (finding) => assert.fail(finding.message))).chained, 2);
  await store.close();
});

test('a chain that one process keeps and another does not is whole or has ended, never wrong', async () => {
  const url = await server.createDatabase();
  const users = Array.from({ length: 30 }, (_, index) => new EndUser(1, index + 1));
  const stores = await Promise.all(
    [true, false].map((chained) => openPostgresStore({ ...OPTIONS, url, lanes: 1, chained })),
  );
  const [keeping, other] = stores as [Store, Store];
  const write = async (store: Store, people: readonly EndUser[]) => {
    for (let round = 0; round < 20; round++)
      await store.write(people.flatMap((user) => [user.add(3), user.subtract(2), user.renew()]));
  };
  // The first ten are written to by both at once, the last ten by each alone.
  await Promise.all([write(keeping, users.slice(0, 20)), write(other, [...users.slice(0, 10), ...users.slice(20)])]);
  const proof = await keeping.prove([], (finding) => assert.fail(finding.message));
  assert.deepEqual([proof.endUsers, proof.chained], [30, 10]);
  await Promise.all(stores.map((store) => store.close()));
});

test('spending, renewing and opening in one batch lead to one head', async (t) => {
  const users = Array.from({ length: 12 }, (_, index) => new EndUser(1, index + 1));
  const stores: Store[] = [
    await openSqliteStore(temporaryFile()),
    await openPostgresStore({ ...OPTIONS, url: await server.createDatabase(), chained: true }),
  ];
  for (const store of stores) {
    t.after(() => store.close());
    await store.write(users.map((user) => user.add(100)));
    // One spends from one cycle, one from two, one in two steps, one opens a cycle, one stops it, one is refused.
    const kinds: ((user: EndUser) => readonly Command[])[] = [
      (user) => [user.subtract(1)],
      (user) => [user.add(5), user.subtract(103)],
      (user) => [user.subtract(1), user.subtract(1)],
      (user) => [user.startCycle(7)],
      (user) => [user.startCycle(7), user.stopCycle()],
      (user) => [user.subtract(1_000)],
    ];
    await store.write(users.flatMap((user, index) => kinds[index % kinds.length]?.(user) ?? []));
    await store.write(users.map((user) => user.subtract(2)));
    const proof = await store.prove([], ({ message }) => assert.fail(message));
    assert.deepEqual([proof.endUsers, proof.chained], [12, 12]);
  }
});

test('a backup that was restored agrees with the digest of its source, and keeps its chains', async () => {
  const digest = await digestFileOf(file);
  const [backup, restored] = [temporaryFile(), temporaryFile()];
  for (const [args, at] of [
    [['backup', backup], file],
    [['restore', backup], restored],
  ] as const)
    assert.equal((await scrip(args, ledgerAt(at))).code, 0);
  const { code, stdout } = await scrip(['verify', '--digest', digest], ledgerAt(restored));
  assert.equal(code, 0, stdout);
  const store = openSqliteStoreBeside(restored);
  assert.equal((await store.prove([], () => {})).chained, 6);
  await store.close();
  byHand(restored, `UPDATE postings SET actor = 'key:9' WHERE ${LAST}`);
  assert.equal((await scrip(['verify'], ledgerAt(restored))).code, 1);
});

test('what comes in while a digest is taken is in it or not: later it is found the same', async (t) => {
  const stores: Store[] = [
    await openSqliteStore(temporaryFile()),
    await openPostgresStore({ ...OPTIONS, url: await server.createDatabase(), chained: true }),
  ];
  for (const store of stores) {
    t.after(() => store.close());
    const users = Array.from({ length: 40 }, (_, index) => new EndUser(1, index + 1));
    await store.write(users.map((user) => user.add(100_000)));
    let isOver = false;
    const lanes = Array.from({ length: store.lanes.count }, async (_, lane) => {
      const own = users.filter(({ key }) => store.lanes.of(key) === lane);
      while (!isOver) await store.write(own.map((user) => user.subtract(1)));
    });
    const digests: PostingsDigest[] = [];
    for (let round = 0; round < 8; round++) {
      digests.push(...(await store.prove(null, ({ message }) => assert.fail(message))).digests);
      await sleep(20);
    }
    isOver = true;
    await Promise.all(lanes);
    const through = digests.map((digest) => digest.through);
    assert(new Set(digests.map(({ postings }) => postings)).size > 4, 'there was much going on');
    assert.deepEqual((await store.prove(through, () => {})).digests, digests);
  }
});

async function digestFileOf(ledger: string): Promise<string> {
  const { code, stdout, stderr } = await scrip(['digest'], ledgerAt(ledger));
  assert.equal(code, 0, stderr);
  const path = join(temporaryFolder(), 'digest');
  writeFileSync(path, stdout);
  return path;
}

function tampered(sql: string): string {
  const copy = temporaryFile();
  const db = new DatabaseSync(file);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  copyFileSync(file, copy);
  byHand(copy, sql);
  return copy;
}

async function digestOf(ledger: string): Promise<PostingsDigest> {
  const store = openSqliteStoreBeside(ledger);
  const { digests } = await store.prove(null, ({ message }) => assert.fail(message));
  await store.close();
  return digests[0] as PostingsDigest;
}

/** By which of the three means a ledger is found to be another. */
async function verdictOn(ledger: string, before: PostingsDigest) {
  const store = openSqliteStoreBeside(ledger);
  const { findings, store: faults } = await auditOf(store);
  let broken = 0;
  const { digests } = await store.prove([before.through], () => {
    broken += 1;
  });
  await store.close();
  return {
    audit: findings.length + faults.length > 0,
    chain: broken > 0,
    digest: digests[0]?.sha256 !== before.sha256,
  };
}
