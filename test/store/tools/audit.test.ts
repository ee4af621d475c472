// Tests that the audit finds rows that were changed by hand in a ledger file, and names the end user of each row.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from '../../../src/ledger/amount.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { POSTING_KINDS } from '../../../src/ledger/posting.ts';
import { transactionId } from '../../../src/ledger/transaction-id.ts';
import { effort } from '../../effort.ts';
import { auditBeside } from '../sqlite/sqlite-ledger.ts';
import { PEOPLE, problemsOf } from '../temporary-ledger.ts';
import { ChangedLedger, flipped, literal, type Row, type Table, where, whereUser } from './changed-ledger.ts';

const ledger = await ChangedLedger.make();
const { file, rows } = ledger;
const NOW = Number(rows.clock[0]?.at);

test('the audit of a correct ledger finds nothing wrong, and counts its end users and postings', async () => {
  const audited = await auditBeside(file);
  assert.deepEqual(problemsOf(audited), []);
  const endUsers = rows.balances.filter(({ type }) => type === 'end-user').length;
  assert.deepEqual([audited.endUsers, audited.postings], [endUsers, rows.postings.length]);
});

/**
 * For each column that contains plans, the text that precedes the plan. If a row has no plan, the test writes this text
 * and a plan to the column.
 */
const PLANS = { plan: '', next: transactionId({ at: NOW, sequence: 9, tail: '0'.repeat(12) }), terms: 'recurring' };

const COLUMNS: Record<Table, readonly string[]> = {
  balances: ['account', 'ends_at', 'period', 'amount', 'remaining', 'held', 'starts_at', 'latest_posting', 'due_at'],
  postings: ['account', 'previous', 'period', 'amount', 'held', 'created_at', 'expires_at', 'hold_expires_at'],
  clock: ['at', 'sequence', 'checksum'],
};

function isSkipped(row: Row, column: string, changed: number): boolean {
  if (changed > Number.MAX_SAFE_INTEGER) return true;
  // The audit does not check `held` in ended cycles, because stores no longer update it there.
  if (column === 'held' && isEnded(row)) return true;
  // Once a hold has been captured or released, only a digest reveals a change to its `hold_expires_at`.
  if (column === 'hold_expires_at') return !isLapsedOrOpen(row);
  return column === 'previous' && changed >= Number(row.posting);
}

function isEnded({ ends_at: end }: Row): boolean {
  return end !== undefined && Number(end) <= NOW;
}

function isLapsedOrOpen({ transaction_id: id }: Row): boolean {
  const ends = rows.postings.filter(({ reference }) => reference !== null && isSame(reference, id));
  return ends.every(({ kind }) => kind === 'lapse');
}

function isSame(a: unknown, b: unknown): boolean {
  return Buffer.compare(a as Uint8Array, b as Uint8Array) === 0;
}

function isOfPastPeriod({ kind, cycle_id: id, period, created_at: at, expires_at: end }: Row): boolean {
  if (kind === 'refund') return Number(end) <= Number(at);
  const cycle = rows.balances.find((row) => isSame(row.cycle_id, id));
  return kind === 'subtract' && Number(cycle?.period) > Number(period);
}

/** `npm test` tries only `count` choices for each row, and continues with the next choices for the next row. */
function someOf<Choice>(choices: readonly Choice[], index: number, count = 1): readonly Choice[] {
  const rotated = choices.map((_, place) => choices[(index * count + place) % choices.length] as Choice);
  return effort(rotated.slice(0, count), choices);
}

for (const table of Object.keys(COLUMNS) as Table[]) {
  for (const column of COLUMNS[table]) {
    test(`the audit finds any ${table}.${column} that is changed by one`, async () => {
      let changes = 0;
      for (const [index, row] of ledger.sample(table).entries()) {
        for (const difference of someOf([1, -1], index)) {
          const changed = Number(row[column]) + difference;
          if (row[column] === null || isSkipped(row, column, changed)) continue;
          const sql = `UPDATE ${table} SET ${column} = ${changed} WHERE ${where(table, row)}`;
          // A changed link, or a changed amount in an earlier period, may be reported without the end user.
          const isPast = column === 'previous' || (column === 'amount' && isOfPastPeriod(row));
          const orStore = row.type === 'end-user' || isPast;
          if (await ledger.assertNamed(row, sql, { orStore })) changes += 1;
        }
      }
      assert(changes > 0, 'at least one row was changed');
    });
  }
}

const WORDS: readonly (readonly [table: Table, column: string, words: readonly string[]])[] = [
  ['balances', 'status', ['active', 'canceled', 'superseded', 'renewed']],
  ['balances', 'type', ['one-time', 'recurring', 'end-user']],
  ['postings', 'kind', POSTING_KINDS],
  ['postings', 'actor', ['']],
];

for (const [table, column, words] of WORDS) {
  test(`the audit finds any ${table}.${column} that is changed to another value`, async () => {
    let changes = 0;
    for (const [index, row] of ledger.sample(table).entries()) {
      const others = words.filter((word) => row[column] !== null && row[column] !== word);
      for (const word of someOf(others, index, 3)) {
        const sql = `UPDATE ${table} SET ${column} = '${word}' WHERE ${where(table, row)}`;
        // If the type of a row changes, the row may no longer belong to an end user.
        if (await ledger.assertNamed(row, sql, { orStore: column === 'type' })) changes += 1;
      }
    }
    assert(changes > 0, 'at least one row was changed');
  });
}

function otherPlans(text: string): readonly string[] {
  const [amount, validity = '', rolloverMax] = text.split('/');
  const count = Number.parseInt(validity, 10);
  const others = [`${Number(amount) + 1}/${validity}`, `${amount}/${count + 1}${validity.at(-1)}`];
  const unit = validity.endsWith('d') ? 'm' : 'd';
  const otherRollover = `${amount}/${validity}/${Number(rolloverMax ?? 0) + 1}`;
  return [...others, `${amount}/${count}${unit}`, otherRollover, `${text}x`, `0${text}`, `${text}/0`, `+${text}`, ''];
}

for (const [table, column] of [
  ['balances', 'plan'],
  ['balances', 'next'],
  ['postings', 'terms'],
] as const) {
  test(`the audit finds any plan in ${table}.${column} that is changed or added`, async () => {
    let changes = 0;
    const sampled = ledger.sample(table).filter(({ type }) => type !== 'end-user');
    for (const [index, row] of sampled.entries()) {
      const text = row[column] as string | null;
      const slash = text === null || column === 'plan' ? -1 : text.indexOf('/');
      const [before, plan] = [text?.slice(0, slash + 1), text?.slice(slash + 1)];
      const changed = plan === undefined ? [`${PLANS[column]}/100/31d`] : otherPlans(plan).map((each) => before + each);
      for (const word of someOf(changed, index, 3)) {
        await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = '${word}' WHERE ${where(table, row)}`);
        changes += 1;
      }
      if (text === null) continue;
      await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = NULL WHERE ${where(table, row)}`);
    }
    assert(changes > 0, 'at least one row was changed');
  });
}

test('the audit finds a changed transaction ID in any scheduled plan, and a changed type in the terms of any posting', async () => {
  for (const row of rows.balances.filter(({ next }) => next !== null)) {
    const next = `${transactionId({ at: NOW, sequence: 9, tail: '0'.repeat(12) })}${String(row.next).slice(36)}`;
    await ledger.assertNamed(row, `UPDATE balances SET next = '${next}' WHERE ${where('balances', row)}`);
  }
  for (const row of ledger.sample('postings').filter(({ terms }) => terms !== null)) {
    const text = String(row.terms);
    const other = text.startsWith('one-time') ? text.replace('one-time', 'recurring') : `one-time${text.slice(9)}`;
    await ledger.assertNamed(row, `UPDATE postings SET terms = '${other}' WHERE ${where('postings', row)}`);
  }
});

/** Indexes of bytes in an ID: the lowest byte of the time, two bytes of the sequence, and a random byte at the end. */
const ID_BYTES = [5, 7, 9, 15];

for (const [table, column] of [
  ['balances', 'cycle_id'],
  ['postings', 'cycle_id'],
  ['balances', 'end_user'],
  ['postings', 'end_user'],
] as const) {
  test(`the audit finds any ${table}.${column} with a flipped bit`, async () => {
    for (const [index, row] of ledger.sample(table).entries()) {
      if ((row[column] as Uint8Array).length === 0) continue;
      for (const byte of someOf(ID_BYTES, index)) {
        const changed = literal(flipped(row[column], byte));
        await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = ${changed} WHERE ${where(table, row)}`);
      }
    }
  });
}

test('the audit finds a flipped bit in the timestamp of any transaction_id, and anywhere in the ID of a cycle or a hold', async () => {
  for (const [index, row] of ledger.sample('postings').entries()) {
    const isNamed = row.terms !== null || row.kind === 'hold' || row.kind === 'lapse';
    for (const byte of someOf(isNamed ? ID_BYTES : ID_BYTES.slice(0, 1), index)) {
      const changed = literal(flipped(row.transaction_id, byte));
      await ledger.assertNamed(row, `UPDATE postings SET transaction_id = ${changed} WHERE ${where('postings', row)}`);
    }
  }
});

test('the audit finds a renewal whose actor is an API key, and any other posting whose actor is `renewal`', async () => {
  for (const row of ledger.sample('postings')) {
    const actor = row.actor === 'renewal' ? 'key:1' : 'renewal';
    await ledger.assertNamed(row, `UPDATE postings SET actor = '${actor}' WHERE ${where('postings', row)}`);
  }
});

test('the audit finds any missing row of the tables balances and postings', async () => {
  for (const table of ['balances', 'postings'] as const)
    for (const row of ledger.sample(table))
      await ledger.assertNamed(row, `DELETE FROM ${table} WHERE ${where(table, row)}`);
});

test('the audit finds a missing clock', async () => {
  assert.match((await ledger.verdictAfter('DELETE FROM clock')).text, /clock of the ledger/);
});

test('the audit finds missing links between postings', async () => {
  for (const row of ledger.sample('postings').filter(({ previous }) => previous !== null))
    await ledger.assertNamed(row, `UPDATE postings SET previous = NULL WHERE ${where('postings', row)}`);
});

const POSTING =
  'posting, previous, account, end_user, transaction_id, cycle_id, period, kind, amount, created_at, expires_at, actor, terms, reference';

/** SQL that appends a posting. `values` are the expressions for its columns, starting with `account`. */
function entered(row: Row, values: string): string {
  const user = `type = 'end-user' AND ${whereUser(row)}`;
  return `INSERT INTO postings (${POSTING}) SELECT 999, (SELECT latest_posting FROM balances WHERE ${user}), ${values};
    UPDATE balances SET latest_posting = 999 WHERE ${user};`;
}

test('the audit finds a duplicate posting, whether or not it is linked to its end user', async () => {
  const columns = POSTING.replace('posting, previous, ', '');
  for (const row of ledger.sample('postings')) {
    const twin = `${columns} FROM postings WHERE ${where('postings', row)}`;
    await ledger.assertNamed(row, `INSERT INTO postings (${POSTING}) SELECT 999, previous, ${twin}`, { orStore: true });
    await ledger.assertNamed(row, entered(row, twin));
  }
});

const NEXT_ID = `x'${transactionId({ at: NOW, sequence: 2 ** 20, tail: 'f'.repeat(12) }).replaceAll('-', '')}'`;

function started(row: Row, type: 'one-time' | 'recurring', amount: number): string {
  const end = NOW + 10 * DAY_MS;
  const kind = type === 'one-time' ? 'add' : 'start-cycle';
  const user = `${row.account}, ${literal(row.end_user)}`;
  return `INSERT INTO balances (account, end_user, ends_at, cycle_id, type, status, period, amount, remaining, held, starts_at, plan)
      VALUES (${user}, ${end}, ${NEXT_ID}, '${type}', 'active', 0, ${amount}, ${amount}, 0, ${NOW}, '${amount}/10d');
    ${type === 'recurring' ? `UPDATE balances SET due_at = ${end} WHERE type = 'end-user' AND ${whereUser(row)};` : ''}
    ${entered(row, `${user}, ${NEXT_ID}, ${NEXT_ID}, 0, '${kind}', ${amount}, ${NOW}, ${end}, 'key:1', '${type}/${amount}/10d', NULL`)}`;
}

function moved(cycle: Row, kind: string, amount: number, at = NOW): string {
  const here = where('balances', cycle);
  const values = `account, end_user, ${NEXT_ID}, cycle_id, period, '${kind}', ${amount}, ${at}, ends_at, 'key:1', NULL, NULL`;
  return `UPDATE balances SET remaining = remaining + ${amount} WHERE ${here};
    ${entered(cycle, `${values} FROM balances WHERE ${here}`)}`;
}

const used = ledger.row('balances', { type: 'one-time', amount: 50 });
const rich = ledger.row('balances', { amount: AMOUNT_MAX });
const ended = ledger.row('balances', { type: 'one-time', amount: 100 });
const superseded = ledger.row('balances', { amount: 30, period: 3 });
const active = ledger.row('balances', { amount: 60, status: 'active' });
const first = ledger.row('balances', { amount: 25 });
const firstOpening = `${whereUser(first)} AND cycle_id = ${literal(first.cycle_id)} AND period = 0`;
const isOf = (row: Row, period: number) =>
  `${whereUser(row)} AND cycle_id = ${literal(row.cycle_id)} AND period = ${period}`;

/** `says` is null if Scrip could have written the same rows, so that the audit cannot find the change. */
const FORGERIES: readonly (readonly [what: string, row: Row, sql: string, says: RegExp | null])[] = [
  ['a forged addition', used, started(used, 'one-time', 5), null],
  ['a balance above 2^53−1', rich, started(rich, 'one-time', AMOUNT_MAX), /more than 2\^53−1/],
  ['a forged start of a cycle', used, started(used, 'recurring', 5), null],
  [
    'a second active cycle',
    active,
    `DROP INDEX one_active_cycle; ${started(active, 'recurring', 5)}`,
    /at most one active recurring cycle.*2 recurring cycles are active at the same time/s,
  ],
  ['a forged subtraction', used, moved(used, 'subtract', -5), null],
  ['a subtraction that adds credits', used, moved(used, 'subtract', 5), /a subtraction only spends credits/],
  ['a stop that moves credits', active, moved(active, 'stop-cycle', -5), /stopping a cycle moves no credits/],
  ['a stop of a stopped cycle', superseded, moved(superseded, 'stop-cycle', 0), /only an active recurring cycle/],
  ['a second addition to the same cycle', used, moved(used, 'add', 5), /a cycle is opened only once/],
  [
    'a subtraction after the end of its cycle',
    ended,
    `UPDATE balances SET amount = 101, remaining = 1, plan = '101/3d' WHERE ${where('balances', ended)};
      UPDATE postings SET amount = 101, terms = 'one-time/101/3d' WHERE ${isOf(ended, 0)} AND kind = 'add'; ${moved(ended, 'subtract', -1)}`,
    /a posting is made between the start and the end of its cycle/,
  ],
  [
    'a period with more credits than the previous one',
    superseded,
    `UPDATE balances SET amount = 35, remaining = 31 WHERE ${where('balances', superseded)};
      UPDATE postings SET amount = 35 WHERE ${isOf(superseded, 3)} AND kind = 'renew'`,
    /a renewal grants the credits of the plan and the unused credits that roll over/,
  ],
  [
    'a missing renewal between two others',
    superseded,
    `UPDATE postings SET previous = (SELECT previous FROM postings WHERE ${isOf(superseded, 2)})
        WHERE previous = (SELECT posting FROM postings WHERE ${isOf(superseded, 2)});
      DELETE FROM postings WHERE ${isOf(superseded, 2)}`,
    /is a renewal that was not due/,
  ],
  [
    'a cycle that begins with its second period',
    first,
    `UPDATE postings SET previous = (SELECT previous FROM postings WHERE ${firstOpening} AND kind = 'start-cycle')
        WHERE previous = (SELECT posting FROM postings WHERE ${firstOpening} AND kind = 'start-cycle');
      DELETE FROM postings WHERE ${firstOpening} AND kind = 'start-cycle'`,
    /a posting touches only a cycle that an earlier posting opened/,
  ],
];

for (const [what, row, sql, says] of FORGERIES) {
  const isFound = says
    ? 'found by the audit, although balances and postings agree'
    : 'not found by the audit, because the ledger is still consistent';
  test(`${what} is ${isFound}`, async () => {
    const { text } = await ledger.verdictAfter(sql);
    if (says === null) assert.equal(text, '');
    else {
      assert.match(text, says);
      await ledger.assertNamed(row, sql);
    }
  });
}

test('the audit finds an end user with balances but without postings', async () => {
  const { endUser } = PEOPLE.namesake.key;
  const row = { account: 9, end_user: Buffer.from(endUser.replaceAll('-', ''), 'hex') };
  const [cycle] = rows.balances;
  assert(cycle);
  const columns = 'ends_at, cycle_id, type, status, period, amount, remaining, held, starts_at, plan, latest_posting';
  const here = where('balances', cycle);
  const copied = `SELECT 9, ${literal(row.end_user)}, ${columns} FROM balances WHERE ${here}`;
  const sql = `INSERT INTO balances (account, end_user, ${columns}) ${copied}`;
  assert.match(
    (await ledger.verdictAfter(sql)).text,
    /the number of stored cycles \(\d+\) differs from the number of cycles of end users with postings \(\d+\)/,
  );
});

for (const [table, column] of [
  ['balances', 'amount'],
  ['balances', 'ends_at'],
  ['postings', 'amount'],
] as const) {
  test(`the audit finds a ${table}.${column} above 2^53−1`, async () => {
    const row = rows[table].find((each) => each[column] === Number.MAX_SAFE_INTEGER);
    assert(row);
    await ledger.assertNamed(row, `UPDATE ${table} SET ${column} = ${column} + 1 WHERE ${where(table, row)}`);
  });
}
