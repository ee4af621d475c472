// API keys: their form and checksum, what is kept of them, and what they may do.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { apiKeySecret, hashOf, hintOf, isWellFormed, may, SCOPES, SECRET_BYTES } from './api-key.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const scope = fc.constantFrom(...SCOPES);
const random = fc.uint8Array({ minLength: SECRET_BYTES, maxLength: SECRET_BYTES });
const secret = fc.tuple(scope, random).map((parts) => apiKeySecret(...parts));

test('192 random bits make a key', () => {
  assert.equal(SECRET_BYTES * 8, 192);
});

test('a key says what it is for, and is well-formed', () => {
  fc.assert(
    fc.property(scope, random, (scope, random) => {
      const secret = apiKeySecret(scope, random);
      assert.match(secret, /^scrip_(read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/);
      assert(secret.startsWith(`scrip_${scope}_`));
      assert(isWellFormed(secret));
    }),
  );
});

/** The digits between the scope and the checksum, as the number that they write. */
function numberIn(secret: string): bigint {
  const digits = secret.split('_')[2] as string;
  return [...digits].reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
}

test('a key holds all of its random bits', () => {
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

test('a key with any one character mistyped is turned away', () => {
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
  ['nothing', ''],
  ['a key with its scope changed', KEY.replace('read', 'write')],
  ['a key with a scope that does not exist', KEY.replace('read', 'admin')],
  ['a key of another product', KEY.replace('scrip', 'stripe')],
  ['a key without its last character', KEY.slice(0, -1)],
  ['a key without its checksum', KEY.slice(0, -7)],
  ['a key with a character more', `${KEY}0`],
  ['a key with a line break behind it', `${KEY}\n`],
  ['a key with a space before it', ` ${KEY}`],
  ['a key in upper case', KEY.toUpperCase()],
];

for (const [what, secret] of MALFORMED) {
  test(`${what} is turned away`, () => assert.equal(isWellFormed(secret), false));
}

test('the key that the malformed ones are made of is well-formed', () => {
  assert(isWellFormed(KEY));
});

test('of a key only its SHA-256 is kept', () => {
  assert.equal(hashOf('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  fc.assert(
    fc.property(secret, (secret) => {
      assert.equal(hashOf(secret), createHash('sha256').update(secret).digest('hex'));
    }),
  );
});

test('a hint shows six of the 33 random digits, and no checksum', () => {
  fc.assert(
    fc.property(scope, random, (scope, random) => {
      const secret = apiKeySecret(scope, random);
      const hint = hintOf(secret);
      assert.equal(hint, `${secret.slice(0, `scrip_${scope}_`.length + 6)}…`);
    }),
  );
});

test('a read key reads, and a write key also writes', () => {
  assert.equal(may('read', 'read'), true);
  assert.equal(may('read', 'write'), false);
  assert.equal(may('write', 'read'), true);
  assert.equal(may('write', 'write'), true);
});

test('the bytes that a secret is made from are left as they are', () => {
  const bytes = Buffer.alloc(SECRET_BYTES, 0xa5);
  apiKeySecret('write', bytes);
  assert.deepEqual(bytes, Buffer.alloc(SECRET_BYTES, 0xa5));
});
