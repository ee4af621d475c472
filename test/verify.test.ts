// `scrip verify` finds every change that somebody made to a ledger by hand, one change at a time, and names it; and it
// finds nothing where nothing was changed. Most changes are audited in this process, a few through the command itself.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AMOUNT_MAX } from '../src/ledger/amount.ts';
import { DAY_MS, VALIDITY_DAYS_MAX } from '../src/ledger/instant.ts';
import { transactionId } from '../src/ledger/transaction-id.ts';
import { openSqliteStoreBeside } from '../src/store/sqlite/sqlite-store.ts';
import { CannotOpen } from '../src/store/store.ts';
import { ChangedLedger, flipped, literal, type Row, type Table, where, whereUser } from './store/changed-ledger.ts';
import { byHand, damaged, otherProcess } from './store/outside.ts';
import { ledgerAt, scrip } from './store/scrip-command.ts';
import { auditOf, ENDLESS, openFor, PEOPLE, temporaryFile } from './store/temporary-ledger.ts';

/** An audit of so small a ledger takes milliseconds; one that takes this long, with a process around it, never ends. */
const AUDIT_MS_MAX = 20_000;

const ledger = await ChangedLedger.make();
const { file, rows } = ledger;

const COLUMNS: Record<Table, readonly string[]> = {
  holdings: [
    'account',
    'ends_at',
    'period',
    'amount',
    'remaining',
    'starts_at',
    'validity_days',
    'latest_posting',
    'posting_count',
  ],
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
          if (await ledger.assertNamed(row, sql)) changes += 1;
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
        // A row of another type may belong to nobody any more.
        if (await ledger.assertNamed(row, sql, { orStore: column === 'type' })) changes += 1;
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
        await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = ${changed} WHERE ${where(table, row)}`);
      }
    }
  });
}

test('another time in any transaction_id is found, and any other bit of one that starts a cycle', async () => {
  for (const row of rows.postings) {
    const isOpening = row.kind !== 'subtract' && row.kind !== 'stop-cycle';
    for (const byte of isOpening ? ID_BYTES : ID_BYTES.slice(0, 1)) {
      const changed = literal(flipped(row.transaction_id, byte));
      await ledger.assertNamed(row, `UPDATE postings SET transaction_id = ${changed} WHERE ${where('postings', row)}`);
    }
  }
});

test('a renewal that somebody is said to have done, or a request that nobody did, is found', async () => {
  for (const row of rows.postings) {
    const actor = row.actor === 'renewal' ? 'key:1' : 'renewal';
    await ledger.assertNamed(row, `UPDATE postings SET actor = '${actor}' WHERE ${where('postings', row)}`);
  }
});

test('a row that is gone is found, whichever it is', async () => {
  for (const table of ['holdings', 'postings'] as const)
    for (const row of rows[table]) await ledger.assertNamed(row, `DELETE FROM ${table} WHERE ${where(table, row)}`);
});

test('a clock that is gone is found', async () => {
  assert.match((await ledger.verdictAfter('DELETE FROM clock')).text, /clock of the ledger/);
});

test('a chain of postings that was cut is found', async () => {
  for (const row of rows.postings.filter(({ previous }) => previous !== null))
    await ledger.assertNamed(row, `UPDATE postings SET previous = NULL WHERE ${where('postings', row)}`);
});

const POSTING =
  'posting, previous, account, end_user, transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor';

/** SQL that enters one more posting of an end user behind its latest; `values` are those of its columns from the account on. */
function entered(row: Row, values: string): string {
  const user = `type = 'end-user' AND ${whereUser(row)}`;
  return `INSERT INTO postings (${POSTING}) SELECT 999, (SELECT latest_posting FROM holdings WHERE ${user}), ${values};
    UPDATE holdings SET latest_posting = 999, posting_count = posting_count + 1 WHERE ${user};`;
}

test('a posting that is there twice is found, in the chain of its end user and outside of it', async () => {
  const columns = 'account, end_user, transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor';
  for (const row of rows.postings) {
    const twin = `${columns} FROM postings WHERE ${where('postings', row)}`;
    await ledger.assertNamed(row, `INSERT INTO postings (${POSTING}) SELECT 999, previous, ${twin}`, { orStore: true });
    await ledger.assertNamed(row, entered(row, twin));
  }
});

const NOW = Number(rows.clock[0]?.at);
/** An id that the ledger might give out next. */
const LATEST = `x'${transactionId({ at: NOW, sequence: 2 ** 20, tail: 'f'.repeat(12) }).replaceAll('-', '')}'`;

/** SQL that starts a cycle of an end user now, with all that belongs to it. */
function started(row: Row, type: 'one-time' | 'recurring', amount: number): string {
  const end = NOW + 10 * DAY_MS;
  const kind = type === 'one-time' ? 'add' : 'start-cycle';
  return `INSERT INTO holdings (account, end_user, ends_at, cycle_id, type, status, period, amount, remaining, starts_at, validity_days)
      VALUES (${row.account}, ${literal(row.end_user)}, ${end}, ${LATEST}, '${type}', 'active', 0, ${amount}, ${amount}, ${NOW}, 10);
    ${entered(row, `${row.account}, ${literal(row.end_user)}, ${LATEST}, ${LATEST}, 0, '${kind}', ${amount}, ${NOW}, ${end}, 'key:1'`)}`;
}

/** SQL that moves the credits of a cycle, with a posting to go with it. */
function moved(cycle: Row, kind: string, amount: number): string {
  return `UPDATE holdings SET remaining = remaining + ${amount} WHERE ${where('holdings', cycle)};
    ${entered(cycle, `account, end_user, ${LATEST}, cycle_id, period, '${kind}', ${amount}, ${NOW}, ends_at, 'key:1' FROM holdings WHERE ${where('holdings', cycle)}`)}`;
}

const used = ledger.row('holdings', { type: 'one-time', amount: 50 });
const rich = ledger.row('holdings', { amount: AMOUNT_MAX });
const ended = ledger.row('holdings', { amount: 30, period: 1 });
const next = ledger.row('holdings', { amount: 30, period: 2 });
const first = ledger.row('holdings', { amount: 30, period: 0 });
const opening = `${whereUser(first)} AND cycle_id = ${literal(first.cycle_id)} AND period = 0`;

/** Changes in which cycles and postings agree. Those that say nothing are the controls of the others beside them. */
const FORGERIES: readonly (readonly [what: string, row: Row, sql: string, says: RegExp | null])[] = [
  ['credits that were added like any others', used, started(used, 'one-time', 5), null],
  ['credits past 2^53−1', rich, started(rich, 'one-time', AMOUNT_MAX), /past 2\^53−1/],
  ['a cycle that was started like any other', used, started(used, 'recurring', 5), null],
  [
    'a second active cycle',
    next,
    `DROP INDEX one_active_cycle; ${started(next, 'recurring', 5)}`,
    /2 recurring cycles are active at once/,
  ],
  ['credits that were spent like any others', used, moved(used, 'subtract', -5), null],
  ['credits that come back', used, moved(used, 'subtract', 5), /subtracts 5 credits/],
  ['credits that a stop moves', used, moved(used, 'stop-cycle', -5), /moves -5 credits by a stop/],
  ['credits that are added to a cycle', used, moved(used, 'add', 5), /starts a cycle of 50 credits with 5/],
  [
    'credits that were spent after their end',
    ended,
    moved(ended, 'subtract', -5),
    /lies outside the time of its cycle/,
  ],
  [
    'a period of other credits than the one before',
    next,
    `UPDATE holdings SET amount = 35, remaining = 35 WHERE ${where('holdings', next)};
      UPDATE postings SET amount = 35 WHERE ${whereUser(next)} AND kind = 'renew' AND period = 2`,
    /and its next period do not abut/,
  ],
  [
    'a cycle that begins with its second period',
    first,
    `DELETE FROM holdings WHERE ${where('holdings', first)};
      UPDATE postings SET previous = NULL WHERE posting = (SELECT min(posting) FROM postings WHERE ${whereUser(first)} AND NOT (${opening}));
      UPDATE postings SET previous = (SELECT max(p.posting) FROM postings AS p WHERE p.posting < postings.posting AND ${whereUser(first)} AND NOT (p.cycle_id = ${literal(first.cycle_id)} AND p.period = 0))
        WHERE ${whereUser(first)};
      DELETE FROM postings WHERE ${opening}`,
    /has no period before it/,
  ],
];

for (const [what, row, sql, says] of FORGERIES) {
  test(`${what}: ${says ? 'found, though cycles and postings agree' : 'nothing to be found but in the totals'}`, async () => {
    const { text } = await ledger.verdictAfter(sql);
    if (says === null)
      for (const line of text.split('\n')) assert.match(line, /^the (totals|recent activity) of account 1 /);
    else {
      assert.match(text, says);
      await ledger.assertNamed(row, sql);
    }
  });
}

test('an end user that was never there is found', async () => {
  const { endUser } = PEOPLE.namesake.key;
  const row = { account: 9, end_user: Buffer.from(endUser.replaceAll('-', ''), 'hex') };
  const [cycle] = rows.holdings;
  assert(cycle);
  const columns =
    'ends_at, cycle_id, type, status, period, amount, remaining, starts_at, validity_days, latest_posting, chain';
  const here = where('holdings', cycle);
  await ledger.assertNamed(
    row,
    `INSERT INTO holdings (account, end_user, ${columns}) SELECT 9, ${literal(row.end_user)}, ${columns} FROM holdings WHERE ${here}`,
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
    await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = ${column} + 1 WHERE ${where(table, row)}`);
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

const THROUGH_THE_COMMAND: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  [
    'a credit too many',
    'UPDATE holdings SET remaining = remaining + 1 WHERE remaining = 27',
    new RegExp(
      `^invariant 1, account 1, end user ${PEOPLE.oneTime.key.endUser}: .* holds 28 credits, and its postings sum to 27$`,
      'm',
    ),
  ],
  [
    'a posting that is gone',
    `DELETE FROM postings WHERE kind = 'subtract' AND amount < -1000`,
    new RegExp(`^invariant 1, account 1, end user ${PEOPLE.rich.key.endUser}: `, 'm'),
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
    assert.match(
      stdout,
      /^The ledger is broken in (?:1 place|[1-9]\d* places): \d+ end users? and \d+ postings checked\.\n$/m,
    );
    assert.deepEqual([code, stderr], [1, '']);
  });
}
