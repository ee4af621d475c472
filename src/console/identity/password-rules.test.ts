// Which passwords are refused, and that long ones which nobody else has are not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { whatIsWrongWithPassword } from './password-rules.ts';

const context = { email: 'ada.lovelace@engine.example', accountName: 'Analytical Engines' };

const REFUSED: readonly (readonly [password: string, says: RegExp])[] = [
  ['', /at least 15/],
  ['x7#kQ2!pL9vB4$', /at least 15/],
  ['👩‍🚀👩‍🚀👩‍🚀', /at least 15/],
  ['ab7 '.repeat(33), /at most 128/],
  ['aaaaaaaaaaaaaaa', /tried first/],
  ['passwordpassword', /tried first/],
  ['abcabcabcabcabcabc', /tried first/],
  ['correct!correct!', /tried first/],
  ['1qaz2wsx3edc4rfv', /tried first/],
  ['PASSWORDstandard', /tried first/],
  ['123456789012345', /easy to guess/],
  ['987654321987654', /easy to guess/],
  ['abcdefghijklmnop', /easy to guess/],
  ['qwertyuiopasdfgh', /easy to guess/],
  ['password12345678', /easy to guess/],
  ['P@ssw0rd12345678', /easy to guess/],
  ['ada.lovelace@engine.example', /easy to guess/],
  ['lovelace12345678', /easy to guess/],
  ['Analytical Engines!', /easy to guess/],
  ['scrip-admin-12345', /easy to guess/],
];

for (const [password, says] of REFUSED) {
  test(`${JSON.stringify(password.slice(0, 30))} is refused`, () => {
    assert.match(whatIsWrongWithPassword(password, context) ?? 'nothing is wrong', says);
  });
}

const TAKEN = [
  'seven green bottles on a wall',
  'correct horse battery staple',
  'x7#kQ2!pL9vB4$w',
  'test-password-123456',
  'MyVeryLongPassword123',
  'the engine of ada has no steam',
  `${'ab7 '.repeat(31)}wxyz`,
  'пять зелёных бутылок',
];

for (const password of TAKEN) {
  test(`${JSON.stringify(password.slice(0, 30))} is taken`, () => {
    assert.equal(whatIsWrongWithPassword(password, context), null);
  });
}
