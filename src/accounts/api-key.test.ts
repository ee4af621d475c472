// Tests the format, the checksum, the stored hash, the hint and the scopes of API keys.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { apiKeySecret, hashOf, hintOf, isWellFormed, SCOPES, SECRET_BYTES } from './api-key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const scope = fc.constantFrom(...SCOPES);
const random = fc.uint8Array({ minLength: SECRET_BYTES, maxLength: SECRET_BYTES });
const secret = fc.tuple(scope, random).map((parts) => apiKeySecret(...parts));

test('an API key has 192 random bits', () => {
  assert.equal(SECRET_BYTES * 8, 192);
});

test('an API key contains its scope and is well-formed', () => {
  fc.assert(
    fc.property(scope, random, (scope, random) => {
      const secret = apiKeySecret(scope, random);
      assert.match(secret, /^scrip_(read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/);
      assert(secret.startsWith(`scrip_${scope}_`));
      assert(isWellFormed(secret));
    }),
  );
});

/** The base-62 number between the scope and the checksum. */
function numberIn(secret: string): bigint {
  const digits = secret.split('_')[2] as string;
  return [...digits].reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
}

test('an API key encodes all of its random bits', () => {
  const bytes = fc.oneof(
    random,
    fc.constant(new Uint8Array(SECRET_BYTES)),
    fc.constant(new Uint8Array(SECRET_BYTES).fill(255)),
  );
  fc.assert(
    fc.property(bytes, (bytes) => {
      assert.equal(numberIn(apiKeySecret('write', bytes)), BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
    }),
  );
});

test('an API key with one mistyped character is not well-formed', () => {
  fc.assert(
    fc.property(secret, fc.nat(), fc.constantFrom(...DIGITS, '_', '-', ' ', 'é'), (secret, place, typed) => {
      const at = place % secret.length;
      fc.pre(secret[at] !== typed);
      assert.equal(isWellFormed(secret.slice(0, at) + typed + secret.slice(at + 1)), false);
    }),
    { numRuns: 1_000 },
  );
});

const KEY = apiKeySecret('read', new Uint8Array(SECRET_BYTES).fill(7));

const MALFORMED: readonly (readonly [what: string, secret: string])[] = [
  ['an empty API key', ''],
  ['an API key with its scope changed', KEY.replace('read', 'write')],
  ['an API key with an unknown scope', KEY.replace('read', 'admin')],
  ['an API key of another product', KEY.replace('scrip', 'stripe')],
  ['an API key without its last character', KEY.slice(0, -1)],
  ['an API key without its checksum', KEY.slice(0, -7)],
  ['an API key with a character appended', `${KEY}0`],
  ['an API key followed by a line break', `${KEY}\n`],
  ['an API key after a space', ` ${KEY}`],
  ['an API key in upper case', KEY.toUpperCase()],
];

for (const [what, secret] of MALFORMED) {
  test(`${what} is not well-formed`, () => assert.equal(isWellFormed(secret), false));
}

test('the malformed API keys in the tests are derived from a well-formed key', () => {
  assert(isWellFormed(KEY));
});

test('the stored hash of an API key is its SHA-256', () => {
  assert.equal(hashOf('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  fc.assert(
    fc.property(secret, (secret) => {
      assert.equal(hashOf(secret), createHash('sha256').update(secret).digest('hex'));
    }),
  );
});

test('the hint of an API key shows six of its 33 random digits and no checksum', () => {
  fc.assert(
    fc.property(scope, random, (scope, random) => {
      const secret = apiKeySecret(scope, random);
      const hint = hintOf(secret);
      assert.equal(hint, `${secret.slice(0, `scrip_${scope}_`.length + 6)}…`);
    }),
  );
});

test('creating an API key from random bytes does not modify these bytes', () => {
  const bytes = Buffer.alloc(SECRET_BYTES, 0xa5);
  apiKeySecret('write', bytes);
  assert.deepEqual(bytes, Buffer.alloc(SECRET_BYTES, 0xa5));
});
