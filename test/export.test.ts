// Exporting an account: every posting once, in one snapshot, from either store, in a form that other programs read and
// no spreadsheet runs.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { copyDatabase, createApiKey, openBeside } from '../src/app.ts';
import { databaseAt } from '../src/config.ts';
import type { Posting } from '../src/ledger/posting.ts';
import { type ExportedPosting, exportedText } from '../src/store/account-export.ts';
import { openSqliteAccount } from '../src/store/sqlite/account-postings.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { PostgresServer } from './postgres/postgres-server.ts';
import { ledgerAt, scrip, serve } from './store/scrip-command.ts';
import { EndUser, makeHistory, PEOPLE, temporaryFile, temporaryFolder } from './store/temporary-ledger.ts';

const options = { timeout: 240_000 };
const ACCOUNTS = ['Lovelace Ltd', 'Ünïcode „GmbH“'];
const COLUMNS = 'end_user_id,transaction_id,kind,amount,created_at,expires_at,cycle_id,period,actor,note';

let server: PostgresServer;
let file: string;
/** The same ledger in both stores. */
const ledgers: { readonly name: string; readonly url: string }[] = [];

before(async () => {
  server = await PostgresServer.start();
  file = temporaryFile();
  const store = await openBeside({ kind: 'file', path: file });
  for (const accountName of ACCOUNTS) await createApiKey(store, { accountName, scope: 'write' });
  await store.close();
  await makeHistory(file);
  const database = await server.createDatabase();
  await copyDatabase({ kind: 'file', path: file }, databaseAt('a test', database, {}), () => {});
  ledgers.push({ name: 'SQLite', url: `file:${file}` }, { name: 'PostgreSQL', url: database });
});
after(() => server.remove());

interface Line {
  readonly end_user_id: string;
  readonly transaction_id: string;
  readonly kind: string;
  readonly amount: number;
  readonly created_at: string;
  readonly expires_at: string;
  readonly cycle_id: string;
  readonly period: number;
  readonly actor: string;
  readonly note: string | null;
}

async function exported(url: string, account: string, format: string): Promise<string> {
  const { code, stdout, stderr } = await scrip(['export', '--account', account, '--format', format], {
    DATABASE_URL: url,
  });
  assert.equal(code, 0, stderr);
  return stdout;
}

const linesOf = (text: string): Line[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** A reader of RFC 4180, by the letter. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  let row: string[] = [];
  for (let match = field.exec(text); match !== null; match = field.exec(text)) {
    row.push(match[1]?.replaceAll('""', '"') ?? (match[2] as string));
    if (match[3] === ',') continue;
    rows.push(row);
    row = [];
    if (field.lastIndex === text.length) return rows;
  }
  assert.fail('it is no CSV');
}

describe('an export', options, () => {
  test('has every posting of the account once, the same from either store', async () => {
    const texts = await Promise.all(ledgers.map(({ url }) => exported(url, 'Lovelace Ltd', 'ndjson')));
    const [lines, others] = texts.map(linesOf) as [Line[], Line[]];
    // Postings of one transaction have no order among them.
    const inOrder = (a: Line, b: Line) => (a.transaction_id + a.cycle_id < b.transaction_id + b.cycle_id ? -1 : 1);
    assert.deepEqual(lines.toSorted(inOrder), others.toSorted(inOrder));
    const ids = (all: Line[]) => all.map(({ transaction_id: id }) => id);
    assert.deepEqual(ids(lines), ids(others), 'in the same order');
    const store = await openSqliteStore(file);
    for (const { key } of Object.values(PEOPLE).filter(({ key }) => key.account === 1)) {
      const mine = lines.filter(({ end_user_id }) => end_user_id === key.endUser);
      const { transactions } = await store.transactions(key, { from: null, limit: 1_000 });
      const byTransaction = new Map<string, number>();
      for (const { transaction_id: id, kind, amount } of mine)
        if (kind !== 'stop-cycle') byTransaction.set(id, (byTransaction.get(id) ?? 0) + amount);
      const listed = transactions.toReversed().map(({ id, amount }) => [id, amount]);
      assert.deepEqual([...byTransaction], listed);
      const first = mine[0] as Line;
      assert.deepEqual(Object.keys(first).join(), COLUMNS);
      assert.match(first.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.equal(first.cycle_id, first.transaction_id, 'the first is what made the cycle');
      assert.equal(first.actor, 'key:1');
    }
    await store.close();
    assert.deepEqual(
      new Set(lines.map(({ kind }) => kind)),
      new Set(['add', 'subtract', 'start-cycle', 'renew', 'stop-cycle']),
    );
  });

  test('has nothing of another account', async () => {
    for (const { url } of ledgers) {
      const lines = linesOf(await exported(url, 'Ünïcode „GmbH“', 'ndjson'));
      assert.deepEqual(
        lines.map(({ amount }) => amount),
        [7, -2],
      );
      assert.deepEqual(new Set(lines.map(({ end_user_id }) => end_user_id)), new Set([PEOPLE.namesake.key.endUser]));
    }
  });

  test('is the same as CSV', async () => {
    for (const { url } of ledgers) {
      const [header, ...rows] = rowsOf(await exported(url, 'Lovelace Ltd', 'csv'));
      const lines = linesOf(await exported(url, 'Lovelace Ltd', 'ndjson'));
      assert.equal(header?.join(), COLUMNS);
      assert.deepEqual(
        rows,
        lines.map((line) => Object.values(line).map((value) => String(value ?? ''))),
      );
    }
  });

  test('is written to a file beside a running server, with its progress on standard error', async (t) => {
    const target = temporaryFile();
    const store = await openBeside({ kind: 'file', path: target });
    await createApiKey(store, { accountName: 'Acme', scope: 'write' });
    await store.close();
    await makeHistory(target);
    await serve(t, target);
    const output = join(temporaryFolder(), 'acme.csv');
    const args = ['export', '--account', 'Acme', '--format', 'csv', '--output', output];
    const first = await scrip(args, ledgerAt(target));
    const count = rowsOf(readFileSync(output, 'utf8')).length - 1;
    assert.deepEqual([first.code, first.stdout], [0, `${count} postings of Acme are in ${output}.\n`]);
    assert.match(first.stderr, new RegExp(`^exporting: ${count} of ${count} postings, 100 %\n$`));
    writeFileSync(output, 'mine');
    const second = await scrip(args, ledgerAt(target));
    assert.deepEqual([second.code, second.stderr], [1, `${output} is there already; name a file that is not.\n`]);
    assert.equal(readFileSync(output, 'utf8'), 'mine');
  });

  test('of an unknown account, or where there is no ledger, is refused', async () => {
    for (const { url } of ledgers) {
      const output = join(temporaryFolder(), 'none.csv');
      const args = ['export', '--account', 'Nobody', '--format', 'csv', '--output', output];
      const { code, stderr } = await scrip(args, { DATABASE_URL: url });
      assert.deepEqual([code, stderr], [1, 'There is no account named Nobody; see `scrip key list`.\n']);
      assert(!existsSync(output));
    }
    const none = await scrip(['export', '--account', 'x', '--format', 'csv'], ledgerAt(`${file}.none`));
    assert.match(none.stderr, /^There is no ledger at \S+; check DATABASE_URL\.\n$/);
    const format = await scrip(['export', '--account', 'x', '--format', 'xml'], ledgerAt(file));
    assert.match(format.stderr, /Allowed choices are ndjson, csv/);
  });

  test('is one snapshot: what is written while it lasts is not in it', async (t) => {
    const target = temporaryFile();
    const store = await openSqliteStore(target);
    t.after(() => store.close());
    await createApiKey(store, { accountName: 'Acme', scope: 'write' });
    const people = Array.from({ length: 2_000 }, (_, index) => new EndUser(1, index));
    await store.write(people.map((user) => user.add(5)));
    const postings = await openSqliteAccount(target, 'Acme');
    const seen: ExportedPosting[] = [];
    for await (const batch of postings.batches()) {
      seen.push(...batch);
      await store.write(people.map((user) => user.subtract(1)));
    }
    await postings.close();
    assert.deepEqual([seen.length, postings.total], [2_000, 2_000]);
    assert(seen.every(({ posting }) => posting.kind === 'add'));
  });

  test('comes in batches of a bounded size, however many postings an end user has', async (t) => {
    const target = temporaryFile();
    const store = await openSqliteStore(target);
    t.after(() => store.close());
    await createApiKey(store, { accountName: 'Acme', scope: 'write' });
    const user = new EndUser(1, 1);
    await store.write([user.add(1_000_000)]);
    for (let round = 0; round < 20; round++) await store.write(Array.from({ length: 500 }, () => user.subtract(1)));
    const postings = await openSqliteAccount(target, 'Acme');
    const sizes: number[] = [];
    for await (const batch of postings.batches()) sizes.push(batch.length);
    await postings.close();
    assert.equal(
      sizes.reduce((sum, size) => sum + size),
      10_001,
    );
    assert.equal(Math.max(...sizes), 1_000);
  });
});

async function csvOf(fields: Partial<Posting>): Promise<string[]> {
  const posting = { transactionId: 't', kind: 'add', amount: 1, createdAt: 0, expiresAt: 1, cycleId: 'c', period: 0 };
  const batch = [
    { user: { account: 1, endUser: 'u' }, posting: { ...posting, actor: 'key:1', note: null, ...fields } as Posting },
  ];
  const chunks = await Array.fromAsync(exportedText(one(batch), 'csv'));
  return rowsOf(chunks.join(''))[1] as string[];
}

async function* one<Item>(item: Item): AsyncGenerator<Item> {
  yield item;
}

describe('a CSV', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\n=1', '＝1', '=HYPERLINK("http://x","y")']) {
    test(`${JSON.stringify(text)} is text to a spreadsheet, not a formula`, async () => {
      assert.deepEqual((await csvOf({ actor: text, note: text })).slice(-2), [`'${text}`, `'${text}`]);
    });
  }

  for (const text of ['a,b', 'a"b', 'a\r\nb', '"', 'user:Ada']) {
    test(`${JSON.stringify(text)} comes out as it went in`, async () => {
      assert.deepEqual((await csvOf({ actor: text, note: text })).slice(-2), [text, text]);
    });
  }

  test('what has no note has nothing there', async () => {
    assert.deepEqual((await csvOf({ note: null })).slice(-2), ['key:1', '']);
  });

  test('a subtraction is a number', async () => {
    assert.equal((await csvOf({ kind: 'subtract', amount: -30 }))[3], '-30');
  });
});
