// Tests that short, common and easily guessed passwords are refused, and that long uncommon passwords are accepted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passwordError } from './credential-rules.ts';

const context = { email: 'ada.lovelace@engine.example', accountName: 'Analytical Engines' };

const REFUSED: readonly (readonly [password: string, error: RegExp])[] = [
  ['', /at least 15/],
  ['x7#kQ2!pL9vB4$', /at least 15/],
  ['👩‍🚀👩‍🚀👩‍🚀', /at least 15/],
  ['ﷺabx9q', /at least 15/],
  ['ab7 '.repeat(33), /at most 128/],
  ['aaaaaaaaaaaaaaa', /too common/],
  ['passwordpassword', /too common/],
  ['abcabcabcabcabcabc', /too common/],
  ['correct!correct!', /too common/],
  ['q1w2e3r4t5y6u7i8', /too common/],
  ['1qaz2wsx3edc4rfv', /easy to guess/],
  ['PASSWORDstandard', /too common/],
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

for (const [password, error] of REFUSED) {
  test(`the password ${JSON.stringify(password.slice(0, 30))} is refused`, () => {
    assert.match(passwordError(password, context) ?? 'accepted', error);
  });
}

const ACCEPTED = [
  'seven green bottles on a wall',
  'correct horse battery staple',
  'x7#kQ2!pL9vB4$w',
  'test-password-123456',
  'MyVeryLongPassword123',
  'the engine of ada has no steam',
  `${'ab7 '.repeat(31)}wxyz`,
  'пять зелёных бутылок',
];

for (const password of ACCEPTED) {
  test(`the password ${JSON.stringify(password.slice(0, 30))} is accepted`, () => {
    assert.equal(passwordError(password, context), null);
  });
}
