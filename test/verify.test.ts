// `scrip verify` finds every change that somebody made to a ledger by hand, one change at a time, and names it; and it
// finds nothing where nothing was changed. Most changes are audited in this process, a few through the command itself.

import assert from 'node:assert/strict';
import { copyFileSync, rmSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VALIDITY_DAYS_MAX } from '../src/ledger/instant.ts';
import { openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import { uuidOf } from '../src/store/sqlite/uuid.ts';
import { CannotOpen } from '../src/store/store.ts';
import { byHand, damaged, otherProcess } from './store/outside.ts';
import { ledgerAt, scrip } from './store/scrip-command.ts';
import { auditOf, ENDLESS, makeHistory, openFor, PEOPLE, temporaryFile } from './store/temporary-ledger.ts';

type Row = Record<string, SQLOutputValue>;
type Table = keyof typeof KEYS;

const KEYS = {
  holdings: ['account', 'end_user', 'ends_at', 'cycle_id'],
  postings: ['posting'],
  clock: ['only'],
} as const;

/** An audit of so small a ledger takes milliseconds; one that takes this long never ends. */
const AUDIT_MS_MAX = 3_000;

const file = temporaryFile();
const rows: Record<Table, Row[]> = { holdings: [], postings: [], clock: [] };

before(async () => {
  await makeHistory(file);
  const db = new DatabaseSync(file, { readOnly: true });
  for (const table of Object.keys(rows) as Table[]) rows[table] = db.prepare(`SELECT * FROM ${table}`).all();
  db.close();
});

function literal(value: SQLOutputValue | undefined): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function where(table: Table, row: Row): string {
  return KEYS[table].map((column) => `${column} = ${literal(row[column])}`).join(' AND ');
}

/** The same bytes but for the last bit of one. */
function flipped(bytes: SQLOutputValue | undefined, index: number): SQLOutputValue {
  const copy = Uint8Array.from(bytes as Uint8Array);
  copy[index] = (copy[index] as number) ^ 1;
  return copy;
}

/**
 * What the audit says of the ledger after one change by hand: whom it names, `store` for what is broken below the end
 * users, and what it says. Null when the database itself refuses the change, two rows of one key.
 */
async function namedAfter(sql: string): Promise<{ names: string[]; text: string } | null> {
  const copy = `${file}.copy`;
  for (const end of ['', '-wal', '-shm']) rmSync(copy + end, { force: true });
  copyFileSync(file, copy);
  try {
    byHand(copy, `PRAGMA synchronous = OFF; ${sql}`);
  } catch (error) {
    assert.match((error as Error).message, /^UNIQUE constraint failed/, sql);
    return null;
  }
  const beside = openSqliteStoreBeside(copy);
  try {
    const { findings, store } = await auditOf(beside);
    const names = findings.map(({ user }) => `account ${user.account}, end user ${user.endUser}`);
    const text = [...findings.map(({ message }) => message), ...store].join('\n');
    return { names: store.length > 0 ? [...names, 'store'] : names, text };
  } finally {
    await beside.close();
  }
}

/** @param row what is changed: the end user that it belongs to, or the store, must be named */
async function assertNamed(row: Row, sql: string): Promise<boolean> {
  const named = await namedAfter(sql);
  if (named === null) return false;
  const owner = row.end_user ? `account ${row.account}, end user ${uuidOf(row.end_user as Uint8Array)}` : 'store';
  const { names } = named;
  assert(
    names.includes(owner) || names.includes('store'),
    `${sql}: ${names.length ? `named ${names}` : 'went unseen'}`,
  );
  return true;
}

const COLUMNS: Record<Table, readonly string[]> = {
  holdings: ['account', 'ends_at', 'period', 'amount', 'remaining', 'starts_at', 'validity_days', 'latest_posting'],
  postings: ['account', 'previous', 'period', 'amount', 'created_at', 'expires_at'],
  clock: ['at', 'sequence', 'checksum'],
};

/** What a posting that follows itself or a later one does is a test of its own, below, and so is what passes 2^53−1. */
function isApart(row: Row, column: string, changed: number): boolean {
  if (changed > Number.MAX_SAFE_INTEGER) return true;
  if (column === 'previous') return changed >= Number(row.posting);
  // Days beyond the last instant all mean the same.
  return column === 'validity_days' && changed === VALIDITY_DAYS_MAX - 1;
}

for (const table of Object.keys(COLUMNS) as Table[]) {
  for (const column of COLUMNS[table]) {
    test(`one more or one less in any ${table}.${column} is found`, async () => {
      let changes = 0;
      for (const row of rows[table]) {
        for (const difference of [1, -1]) {
          const changed = Number(row[column]) + difference;
          if (row[column] === null || isApart(row, column, changed)) continue;
          const sql = `UPDATE ${table} SET ${column} = ${changed} WHERE ${where(table, row)}`;
          if (await assertNamed(row, sql)) changes += 1;
        }
      }
      assert(changes > 0, 'something was changed');
    });
  }
}

const WORDS: readonly (readonly [table: Table, column: string, words: readonly string[]])[] = [
  ['holdings', 'status', ['active', 'canceled', 'renewed']],
  ['holdings', 'type', ['one-time', 'recurring', 'end-user']],
  ['postings', 'kind', ['add', 'start-cycle', 'renew', 'subtract', 'stop-cycle']],
  ['postings', 'actor', ['']],
];

for (const [table, column, words] of WORDS) {
  test(`another word in any ${table}.${column} is found`, async () => {
    let changes = 0;
    for (const row of rows[table]) {
      for (const word of words) {
        if (row[column] === null || row[column] === word) continue;
        const sql = `UPDATE ${table} SET ${column} = '${word}' WHERE ${where(table, row)}`;
        if (await assertNamed(row, sql)) changes += 1;
      }
    }
    assert(changes > 0, 'something was changed');
  });
}

/** Of the bytes of an id, the lowest of its time, two of its sequence, and the last, which is random. */
const ID_BYTES = [5, 7, 9, 15];

for (const [table, column] of [
  ['holdings', 'cycle_id'],
  ['postings', 'cycle_id'],
  ['holdings', 'end_user'],
  ['postings', 'end_user'],
] as const) {
  test(`another bit in any ${table}.${column} is found`, async () => {
    for (const row of rows[table]) {
      if ((row[column] as Uint8Array).length === 0) continue;
      for (const byte of ID_BYTES) {
        const changed = literal(flipped(row[column], byte));
        await assertNamed(row, `UPDATE ${table} SET ${column} = ${changed} WHERE ${where(table, row)}`);
      }
    }
  });
}

test('another time in any transaction_id is found, and any other bit of one that starts a cycle', async () => {
  for (const row of rows.postings) {
    const isOpening = row.kind !== 'subtract' && row.kind !== 'stop-cycle';
    for (const byte of isOpening ? ID_BYTES : ID_BYTES.slice(0, 1)) {
      const changed = literal(flipped(row.transaction_id, byte));
      await assertNamed(row, `UPDATE postings SET transaction_id = ${changed} WHERE ${where('postings', row)}`);
    }
  }
});

test('a renewal that somebody is said to have done, or a request that nobody did, is found', async () => {
  for (const row of rows.postings) {
    const actor = row.actor === 'renewal' ? 'key:1' : 'renewal';
    await assertNamed(row, `UPDATE postings SET actor = '${actor}' WHERE ${where('postings', row)}`);
  }
});

test('a row that is gone is found, whichever it is', async () => {
  for (const table of ['holdings', 'postings'] as const)
    for (const row of rows[table]) await assertNamed(row, `DELETE FROM ${table} WHERE ${where(table, row)}`);
});

test('a clock that is gone is found', async () => {
  assert.match((await namedAfter('DELETE FROM clock'))?.text ?? '', /clock of the ledger/);
});

test('a chain of postings that was cut is found', async () => {
  for (const row of rows.postings.filter(({ previous }) => previous !== null))
    await assertNamed(row, `UPDATE postings SET previous = NULL WHERE ${where('postings', row)}`);
});

test('a posting that is there twice is found, in the chain of its end user and outside of it', async () => {
  const rest = 'account, end_user, transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor';
  for (const row of rows.postings) {
    const here = where('postings', row);
    const outside = `INSERT INTO postings SELECT 999, previous, ${rest} FROM postings WHERE ${here};`;
    await assertNamed(row, outside);
    const user = `type = 'end-user' AND account = ${row.account} AND end_user = ${literal(row.end_user)}`;
    const latest = `(SELECT latest_posting FROM holdings WHERE ${user})`;
    await assertNamed(
      row,
      `${outside} UPDATE postings SET previous = ${latest} WHERE posting = 999;
      UPDATE holdings SET latest_posting = 999 WHERE ${user}`,
    );
  }
});

test('credits that nobody was given are found, also when the posting to go with them is there', async () => {
  const [row] = rows.holdings.filter(({ type, remaining, amount }) => type === 'one-time' && remaining !== amount);
  assert(row);
  const cycle = `UPDATE holdings SET remaining = remaining + 5 WHERE ${where('holdings', row)}`;
  await assertNamed(row, cycle);
  const user = `account = ${row.account} AND end_user = ${literal(row.end_user)}`;
  await assertNamed(
    row,
    `${cycle};
    INSERT INTO postings SELECT 999, max(posting), account, end_user, transaction_id, cycle_id, period, 'add', 5, created_at, expires_at, actor
      FROM postings WHERE ${user} AND cycle_id = ${literal(row.cycle_id)};
    UPDATE holdings SET latest_posting = 999 WHERE type = 'end-user' AND ${user}`,
  );
});

test('an end user that was never there is found', async () => {
  const { endUser } = PEOPLE.namesake.key;
  const row = { account: 9, end_user: Buffer.from(endUser.replaceAll('-', ''), 'hex') };
  const [cycle] = rows.holdings;
  assert(cycle);
  const columns =
    'ends_at, cycle_id, type, status, period, amount, remaining, starts_at, validity_days, latest_posting';
  const here = where('holdings', cycle);
  await assertNamed(
    row,
    `INSERT INTO holdings SELECT 9, ${literal(row.end_user)}, ${columns} FROM holdings WHERE ${here}`,
  );
});

for (const kind of ['add', 'start-cycle', 'renew', 'subtract', 'stop-cycle']) {
  test(`a chain of postings that turns in circles at a posting of kind ${kind} comes to an end and is found`, async (t) => {
    const circling = `${file}.${kind}`;
    copyFileSync(file, circling);
    byHand(
      circling,
      `UPDATE postings SET previous = posting WHERE posting = (SELECT max(posting) FROM postings WHERE kind = '${kind}')`,
    );
    const late = new AbortController();
    const found = await Promise.race([
      otherProcess(t, 'audit', circling).answer(),
      sleep(AUDIT_MS_MAX, ENDLESS, { signal: late.signal }),
    ]);
    late.abort();
    assert.notEqual(found, ENDLESS);
    assert(found.findings.length + found.store.length > 0);
  });
}

for (const [table, column] of [
  ['holdings', 'amount'],
  ['holdings', 'ends_at'],
  ['postings', 'amount'],
] as const) {
  test(`a ${table}.${column} past 2^53−1 is named`, async () => {
    const row = rows[table].find((row) => row[column] === Number.MAX_SAFE_INTEGER);
    assert(row);
    await assertNamed(row, `UPDATE ${table} SET ${column} = ${column} + 1 WHERE ${where(table, row)}`);
  });
}

test('a damaged page is named', async () => {
  for (const { file, page } of await damaged(temporaryFile(), 0)) {
    try {
      const beside = openSqliteStoreBeside(file);
      const { store } = await auditOf(beside).finally(() => beside.close());
      assert.notDeepEqual(store, [], `page ${page}`);
    } catch (error) {
      assert(error instanceof CannotOpen, `page ${page}: ${error}`);
    }
  }
});

test('the command finds a ledger whole, and leaves with 0', async () => {
  const { code, stdout, stderr } = await scrip(['verify'], ledgerAt(file));
  const endUsers = rows.holdings.filter(({ type }) => type === 'end-user').length;
  assert.equal(stdout, `The ledger is whole: ${endUsers} end users and ${rows.postings.length} postings checked.\n`);
  assert.deepEqual([code, stderr], [0, '']);
});

test('the command finds a ledger whole while a server writes to it', async (t) => {
  const busy = `${file}.busy`;
  copyFileSync(file, busy);
  const store = await openFor(t, busy);
  let isVerified = false;
  let writes = 0;
  const verified = scrip(['verify'], ledgerAt(busy)).finally(() => {
    isVerified = true;
  });
  for (; !isVerified; writes++) {
    await store.write([
      PEOPLE.oneTime.add(2),
      PEOPLE.oneTime.subtract(1),
      PEOPLE.renewing.subtract(1),
      PEOPLE.rich.stopCycle(),
    ]);
    await store.write([PEOPLE.replacing.startCycle(3, 7, 'replace')]);
  }
  const { code, stdout, stderr } = await verified;
  assert.match(stdout, /^The ledger is whole: 6 end users and \d+ postings checked\.\n$/);
  assert.deepEqual([code, stderr], [0, '']);
  assert(writes > 1, 'it was written to meanwhile');
});

const { oneTime, rich } = PEOPLE;
const THROUGH_THE_COMMAND: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  [
    'a credit too many',
    'UPDATE holdings SET remaining = remaining + 1 WHERE remaining = 27',
    new RegExp(
      `^invariant 1, account 1, end user ${oneTime.key.endUser}: .* holds 28 credits, and its postings sum to 27$`,
      'm',
    ),
  ],
  [
    'a posting that is gone',
    `DELETE FROM postings WHERE kind = 'subtract' AND amount < -1000`,
    new RegExp(`^invariant 1, account 1, end user ${rich.key.endUser}: `, 'm'),
  ],
  ['a clock that was set back', 'UPDATE clock SET at = at - 1', /^store: the clock of the ledger was changed/m],
  [
    'a posting of nobody',
    `UPDATE postings SET actor = '' WHERE kind = 'stop-cycle'`,
    /^invariant 4, .* does not say who did it$/m,
  ],
];

for (const [what, sql, says] of THROUGH_THE_COMMAND) {
  test(`the command names ${what}, and leaves with 1`, async () => {
    const broken = `${file}.broken`;
    copyFileSync(file, broken);
    byHand(broken, sql);
    const { code, stdout, stderr } = await scrip(['verify'], ledgerAt(broken));
    assert.match(stdout, says);
    assert.match(stdout, /^The ledger is broken in [1-9]\d* places: \d+ end users and \d+ postings checked\.\n$/m);
    assert.deepEqual([code, stderr], [1, '']);
  });
}
