// What may be typed into a form, and what is said of the rest.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { readAmount, readLine, readValidityDays } from './form-input.ts';

const AMOUNTS: readonly (readonly [typed: string, value: number | null, error: RegExp | null])[] = [
  ['1', 1, null],
  [' 100 ', 100, null],
  ['007', 7, null],
  ['9007199254740991', AMOUNT_MAX, null],
  ['9007199254740992', null, /^At most 9,007,199,254,740,991 credits\.$/],
  ['99999999999999999999999999999999', null, /^At most/],
  ['9'.repeat(100_000), null, /too long/],
  ['', null, /^Enter how many/],
  ['   ', null, /^Enter how many/],
  ['0', null, /^At least 1/],
  ['-5', null, /without a sign/],
  ['−5', null, /without a sign/],
  ['1.5', null, /^Whole numbers only/],
  ['1,5', null, /^Whole numbers only/],
  ['1,000', null, /: 1000\.$/],
  ['1.000', null, /: 1000\.$/],
  ["1'234'567", null, /: 1234567\.$/],
  ['1 000', null, /: 1000\.$/],
  ['1e3', null, /^Write a whole number/],
  ['0x10', null, /^Write a whole number/],
  ['１２', null, /^Write a whole number/],
  ['ten', null, /^Write a whole number/],
];

for (const [typed, value, error] of AMOUNTS) {
  test(`the amount ${JSON.stringify(typed.slice(0, 40))} is ${error === null ? 'taken' : 'refused'}`, () => {
    const read = readAmount(typed);
    assert.equal(read.value, value);
    if (error === null) assert.equal(read.error, null);
    else assert.match(read.error ?? '', error);
  });
}

test('no validity means 31 days, there is no upper limit, and less than a day is refused', () => {
  assert.equal(readValidityDays('').value, 31);
  assert.equal(readValidityDays('1').value, 1);
  assert.equal(readValidityDays('99999999999999999999').value, VALIDITY_DAYS_MAX);
  assert.equal(readValidityDays('0').error, 'At least 1 day.');
  assert.match(readValidityDays('a month').error ?? '', /whole number of days/);
});

test('a note is a line of at most so many characters, and none when nothing is typed', () => {
  assert.deepEqual(readLine('  \r\n ', 5), { value: null, error: null });
  assert.equal(readLine('a\r\nb', 5).value, 'a b');
  assert.equal(readLine('a\0b', 5).value, 'a b');
  assert.equal(readLine('🙂🙂🙂🙂🙂', 5).value, '🙂🙂🙂🙂🙂');
  assert.equal(readLine('123456', 5).error, 'At most 5 characters.');
});
