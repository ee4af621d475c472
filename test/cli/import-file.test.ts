// Tests how `scrip import` reads the CSV variants of common programs, and that errors name the line and the column.

import assert from 'node:assert/strict';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CsvReader, type CsvRecord } from '../../src/cli/csv.ts';
import { type CheckedFile, ImportFile } from '../../src/cli/import-file.ts';
import { AMOUNT_MAX } from '../../src/ledger/amount.ts';
import { VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import type { ImportRow } from '../../src/store/tools/import.ts';
import { NOON, temporaryFolder } from '../store/temporary-ledger.ts';

const ADA = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const BEN = '00000000-0000-4000-8000-000000000001';

function recordsOf(text: string, piece: number): CsvRecord[] {
  const reader = new CsvReader();
  const pieces = Array.from({ length: Math.ceil(text.length / piece) }, (_, index) =>
    text.slice(index * piece, (index + 1) * piece),
  );
  return [...pieces.flatMap((part) => reader.read(part)), ...reader.end()];
}

const CSV: readonly (readonly [text: string, records: readonly (readonly (number | string)[])[]])[] = [
  [
    'a,b\n1,2\n',
    [
      [1, 'a', 'b'],
      [2, '1', '2'],
    ],
  ],
  [
    'a,b\r\n1,2',
    [
      [1, 'a', 'b'],
      [2, '1', '2'],
    ],
  ],
  [
    'a,"b, ""c""\r\nd"\r\ne,f\r\n',
    [
      [1, 'a', 'b, "c"\r\nd'],
      [3, 'e', 'f'],
    ],
  ],
  [
    '\n\r\n"",\n\n,x\n',
    [
      [3, '', ''],
      [5, '', 'x'],
    ],
  ],
  ['""\n', [[1, '']]],
  ['', []],
];

test('for chunks of any size, the CSV parser handles quotes, line breaks in fields, empty lines, LF and CRLF', () => {
  for (const [text, records] of CSV)
    for (const piece of [1, 2, 3, 100])
      assert.deepEqual(
        recordsOf(text, piece).map(({ line, fields }) => [line, ...fields]),
        records,
        JSON.stringify(text),
      );
});

async function checked(text: string | Uint8Array): Promise<CheckedFile & { granted: ImportRow[] }> {
  const path = join(temporaryFolder(), 'balances.csv');
  writeFileSync(path, text);
  const file = new ImportFile(path);
  const result = await file.check(NOON, () => {});
  return { ...result, granted: result.errors.count === 0 ? await Array.fromAsync(file.rows()) : [] };
}

const HEADER = 'end_user_id,amount,expires_at,validity_days,note';
const row = (change: Partial<Record<string, string>>) => {
  const fields: Record<string, string> = { end_user_id: ADA, amount: '5', validity_days: '31', ...change };
  return `${HEADER}\n${HEADER.split(',')
    .map((name) => fields[name] ?? '')
    .join(',')}\n`;
};

const ERRORS: readonly (readonly [what: string, text: string, error: RegExp])[] = [
  ['an empty file', '', /^line 1: the file is empty$/],
  ['a file with only a header', `${HEADER}\n`, /^line 1: the file has no rows after the header$/],
  [
    'a file without a header',
    `${ADA},5,,31,\n`,
    /^line 1: "5f2b.*" is not a known column; the columns are end_user_id,amount,/,
  ],
  ['semicolons as separators', 'end_user_id;amount\n', /^line 1: "end_user_id;amount" is not a known column/],
  ['a duplicate column', 'end_user_id,amount,amount,note\n', /^line 1: the amount column appears twice$/],
  ['a header without end_user_id', 'amount,expires_at\n', /^line 1: the header has no end_user_id column$/],
  ['a header without amount', 'end_user_id,expires_at\n', /^line 1: the header has no amount column$/],
  [
    'a header without expires_at and validity_days',
    'end_user_id,amount\n',
    /^line 1: the header has neither expires_at nor validity_days$/,
  ],
  ['a row with too few fields', `${HEADER}\n\n${ADA},5\n`, /^line 3: the row has 2 fields, but the header has 5$/],
  ['an end user that is not a UUID', row({ end_user_id: 'ada' }), /^line 2, column end_user_id: "ada" is not a UUID$/],
  ['a row without an end user', row({ end_user_id: '' }), /^line 2, column end_user_id: "" is not a UUID$/],
  ...['0', '-5', '1.5', '1e3', '05', '', 'ten', '9007199254740992', '99999999999999999999', '5 credits'].map(
    (amount) =>
      [
        `the amount "${amount}"`,
        row({ amount }),
        /^line 2, column amount: ".*" is not a whole number from 1 to/,
      ] as const,
  ),
  ...['0', '-1', '1.5', 'month', '1e2'].map(
    (days) =>
      [
        `the validity "${days}"`,
        row({ validity_days: days }),
        /^line 2, column validity_days: ".*" is not a positive whole number/,
      ] as const,
  ),
  ...['2030-01-01', '2030-01-01T00:00:00', '2030-02-30T00:00:00Z', '1893456000', '01/02/2030'].map(
    (expiry) =>
      [
        `the expiry "${expiry}"`,
        row({ expires_at: expiry, validity_days: '' }),
        /^line 2, column expires_at: ".*" is not a date and time with a time zone, such as 2026-11-20T08:00:00Z$/,
      ] as const,
  ),
  [
    'a row without expires_at and validity_days',
    row({ validity_days: '' }),
    /^line 2, column expires_at: .* either .* neither$/,
  ],
  [
    'a row with both expires_at and validity_days',
    row({ expires_at: '2030-01-01T00:00Z' }),
    /^line 2, column expires_at: .* either .* both$/,
  ],
  [
    'a note of 501 characters',
    row({ note: 'x'.repeat(501) }),
    /^line 2, column note: must have at most 500 characters, none of them U\+0000$/,
  ],
  [
    'an unclosed quote',
    `${HEADER}\n${ADA},5,,31,"a\nb\n`,
    /^line 2: a field has an opening quotation mark, but no closing one/,
  ],
  [
    'an unclosed quote before more than 10,000 characters',
    `${HEADER}\n"${'x\n'.repeat(6_000)}`,
    /^line 2: a field has more than 10000 characters/,
  ],
  [
    'a quote within an unquoted field',
    `${HEADER}\n${ADA},5,,31,a"b\n`,
    /^line 2: a field containing a quotation mark must be enclosed in quotation marks$/,
  ],
  [
    'text after a closing quote',
    `${HEADER}\n${ADA},5,,31,"a"b\n`,
    /^line 2: a closing quotation mark must be followed by a comma or a line break$/,
  ],
];

for (const [what, text, error] of ERRORS)
  test(`scrip import reports the line of ${what}`, async () => {
    const { errors } = await checked(text);
    assert.equal(errors.count, 1, errors.first.map((one) => one.text).join('\n'));
    assert.match(errors.first[0]?.text ?? '', error);
  });

test('scrip import counts all errors in the file and lists the first twenty', async () => {
  const { errors } = await checked(`${HEADER}\n${`${ADA},x,,y,\n`.repeat(30)}`);
  assert.deepEqual([errors.count, errors.first.length, errors.first.at(-1)?.line], [60, 20, 11]);
});

test('scrip import rejects a file that does not exist, is not a regular file or is not UTF-8', async () => {
  await assert.rejects(checked(Buffer.from([0x61, 0xff, 0x0a])), {
    name: 'CannotOpen',
    message: /is not UTF-8 text; save the file as UTF-8\.$/,
  });
  assert.throws(() => new ImportFile(join(temporaryFolder(), 'none.csv')), { message: /^File .* does not exist\.$/ });
  assert.throws(() => new ImportFile(temporaryFolder()), {
    message: / is not a regular file; pass the path of a CSV file\.$/,
  });
});

const ROWS = `\uFEFFnote,amount,end_user_id,validity_days,expires_at\r
"Old balance, ""gold""\r
second line", 5 ,${ADA.toUpperCase()},,2030-01-01T01:00:00+01:00\r
,${AMOUNT_MAX},${BEN},99999999999999999999,\r
`;

test('scrip import accepts columns in any order, spaces around values, a byte order mark and quoted notes', async () => {
  const { granted, rows, hasInstants } = await checked(ROWS);
  assert.deepEqual([rows, hasInstants], [2, true]);
  const expiresAt = Date.UTC(2030, 0, 1);
  assert.deepEqual(granted, [
    { line: 2, endUser: ADA, amount: 5, validity: { expiresAt }, note: 'Old balance, "gold"\r\nsecond line' },
    { line: 4, endUser: BEN, amount: AMOUNT_MAX, validity: { days: VALIDITY_DAYS_MAX }, note: null },
  ]);
});

test('the hash of an import file depends on its rows, not on line endings, the order of columns or the notation of values', async () => {
  const first = await checked(
    `end_user_id,amount,expires_at\n${ADA},5,2030-01-01T00:00:00Z\n${BEN},6,2030-01-01T00:00Z\n`,
  );
  const same = await checked(
    `amount,expires_at,end_user_id,note\r\n5,2030-01-01T00:00Z,${ADA.toUpperCase()},\r\n"6",2030-01-01T02:00+02:00,${BEN},\r\n`,
  );
  assert.equal(same.sha256, first.sha256);
  for (const text of [
    `end_user_id,amount,expires_at\n${ADA},5,2030-01-01T00:00:00Z\n`,
    `end_user_id,amount,expires_at\n${BEN},6,2030-01-01T00:00Z\n${ADA},5,2030-01-01T00:00:00Z\n`,
    `end_user_id,amount,expires_at\n${ADA},5,2030-01-01T00:00:01Z\n${BEN},6,2030-01-01T00:00Z\n`,
    `end_user_id,amount,expires_at,note\n${ADA},5,2030-01-01T00:00:00Z,x\n${BEN},6,2030-01-01T00:00Z,\n`,
  ])
    assert.notEqual((await checked(text)).sha256, first.sha256);
});

test('if the expires_at of a row has passed, scrip import counts the row as expired, not as an error', async () => {
  const at = (instant: number) => `${ADA},5,${new Date(instant).toISOString()}\n`;
  const { errors, expired } = await checked(`end_user_id,amount,expires_at\n${at(NOON - 1)}${at(NOON)}${at(NOON + 1)}`);
  assert.equal(errors.count, 0);
  assert.deepEqual(
    expired.first.map(({ text }) => text),
    [2, 3].map((line) => `line ${line}, column expires_at: this instant has already passed`),
  );
});

test('an import stops if its file changes while its rows are being imported', async () => {
  const path = join(temporaryFolder(), 'balances.csv');
  writeFileSync(path, `end_user_id,amount,validity_days\n${`${ADA},5,31\n`.repeat(20_000)}`);
  const file = new ImportFile(path);
  assert.equal((await file.check(NOON, () => {})).rows, 20_000);
  const rows = file.rows();
  await rows.next();
  appendFileSync(path, `${ADA},5,31\n`);
  await assert.rejects(Array.fromAsync(rows), { name: 'ImportStopped', message: /changed during the import/ });
});
