// Tests which values the form fields accept, and the error messages for all other values.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import {
  readAmount,
  readDays,
  readLine,
  readOptional,
  readRolloverMax,
  readValidity,
  readValidityMonths,
} from './form-input.ts';

const AMOUNTS: readonly (readonly [entered: string, value: number | null, error: RegExp | null])[] = [
  ['1', 1, null],
  [' 100 ', 100, null],
  ['007', 7, null],
  ['9007199254740991', AMOUNT_MAX, null],
  ['9007199254740992', null, /^Enter at most 9,007,199,254,740,991\.$/],
  ['99999999999999999999999999999999', null, /^Enter at most/],
  ['9'.repeat(100_000), null, /^Enter at most/],
  ['', null, /^Enter an amount/],
  ['   ', null, /^Enter an amount/],
  ['0', null, /^Enter at least 1/],
  ['-5', null, /without a sign/],
  ['−5', null, /without a sign/],
  ['1.5', null, /without decimals/],
  ['1,5', null, /without decimals/],
  ['1,000', null, /: 1000\.$/],
  ['1.000', null, /: 1000\.$/],
  ["1'234'567", null, /: 1234567\.$/],
  ['1 000', null, /: 1000\.$/],
  ['1e3', null, /^Enter a whole number, such/],
  ['0x10', null, /^Enter a whole number, such/],
  ['１２', null, /^Enter a whole number, such/],
  ['ten', null, /^Enter a whole number, such/],
];

for (const [entered, value, error] of AMOUNTS) {
  const result = error === null ? 'accepts' : 'refuses';
  test(`the amount field of a form ${result} ${JSON.stringify(entered.slice(0, 40))}`, () => {
    const reading = readAmount(entered);
    assert.equal(reading.value, value);
    if (error === null) assert.equal(reading.error, null);
    else assert.match(reading.error ?? '', error);
  });
}

test('a form accepts a validity of any number of days above 0, and refuses an empty field and other text', () => {
  assert.equal(readDays('1').value, 1);
  assert.equal(readDays('99999999999999999999').value, VALIDITY_DAYS_MAX);
  assert.equal(readDays('0').error, 'Enter at least 1 day.');
  for (const text of ['', ' ', 'a month'])
    assert.equal(readDays(text).error, 'Enter a whole number of days, such as 31.');
});

test('a form accepts a validity of 1 to 120 calendar months, and refuses any other number, an empty field and other text', () => {
  assert.equal(readValidityMonths('1').value, 1);
  assert.equal(readValidityMonths('120').value, 120);
  assert.equal(readValidityMonths('121').error, 'Enter at most 120 months.');
  assert.equal(readValidityMonths('9'.repeat(400)).error, 'Enter at most 120 months.');
  assert.equal(readValidityMonths('0').error, 'Enter at least 1 month.');
  for (const text of ['', ' ', 'a year'])
    assert.equal(readValidityMonths(text).error, 'Enter a whole number of months, such as 1.');
});

test('a form reads a validity as months if months are chosen, and as days otherwise', () => {
  assert.deepEqual(readValidity('2', 'months').value, { validityDays: null, validityMonths: 2 });
  assert.deepEqual(readValidity('2', 'days').value, { validityDays: 2, validityMonths: null });
});

test('in a form, a rollover maximum that is empty or 0 means that no credits roll over, and any other text must be an amount', () => {
  for (const text of ['', ' ', '0', ' 00 ']) assert.equal(readRolloverMax(text).value, 0);
  assert.equal(readRolloverMax('50').value, 50);
  assert.match(readRolloverMax('1,000').error ?? '', /: 1000\.$/);
  assert.match(readRolloverMax('-1').error ?? '', /without a sign/);
});

test('a form reads a rollover maximum of a million spaces and another character in linear time', () => {
  // If the time were quadratic, this test would run for minutes.
  assert.match(readRolloverMax(`${' '.repeat(1_000_000)}x`).error ?? '', /whole number/);
});

test('an optional form field is read as null if it is empty, and is validated otherwise', () => {
  assert.deepEqual(readOptional(' ', readDays), { value: null, error: null });
  assert.equal(readOptional('7', readDays).value, 7);
  assert.equal(readOptional('0', readDays).error, 'Enter at least 1 day.');
});

test('a note in a form is trimmed and put on one line, its length is limited, and an empty note becomes null', () => {
  assert.deepEqual(readLine('  \r\n ', 5), { value: null, error: null });
  assert.equal(readLine('a\r\nb', 5).value, 'a b');
  assert.equal(readLine('a\0b', 5).value, 'a b');
  assert.equal(readLine('🙂🙂🙂🙂🙂', 5).value, '🙂🙂🙂🙂🙂');
  assert.equal(readLine('123456', 5).error, 'Use at most 5 characters.');
});
