// What an API key looks like, what is kept of it, and what it may do.
//
//   scrip_<scope>_<192 random bits>_<checksum>
//
// The random part is 33 digits in base 62, the checksum 6: the CRC-32 of what precedes it, so that a mistyped or
// invented key is turned away, and a leaked one is recognised, without a look-up. Of the key only the SHA-256 is kept:
// 192 random bits need no slow hash.

import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** `write` also reads. */
export type Scope = 'read' | 'write';

export const SCOPES: readonly Scope[] = ['read', 'write'];

export const SECRET_BYTES = 24;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_DIGITS = 33;
const CHECKSUM_DIGITS = 6;
const FORM = /^scrip_(?:read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/;

export interface ApiKey {
  readonly id: number;
  readonly account: number;
  readonly scope: Scope;
}

/** @param random 24 bytes from a cryptographic source */
export function apiKeySecret(scope: Scope, random: Uint8Array): string {
  const body = `scrip_${scope}_${base62(random, SECRET_DIGITS)}`;
  return `${body}_${checksum(body)}`;
}

/** Whether this can be a key at all: its form, and its checksum. */
export function isWellFormed(secret: string): boolean {
  return FORM.test(secret) && secret.slice(-CHECKSUM_DIGITS) === checksum(secret.slice(0, -CHECKSUM_DIGITS - 1));
}

/** What is stored of a key: 64 hexadecimal digits of SHA-256. */
export function hashOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Enough of a key to tell it from others in a list, too little to use it: `scrip_write_Ab3dE6…`. */
export function hintOf(secret: string): string {
  return `${secret.slice(0, secret.lastIndexOf('_') - SECRET_DIGITS + 6)}…`;
}

export function may(held: Scope, wanted: Scope): boolean {
  return held === wanted || held === 'write';
}

function checksum(body: string): string {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, crc32(body));
  return base62(bytes, CHECKSUM_DIGITS);
}

function base62(bytes: Uint8Array, digits: number): string {
  const quotient = Uint8Array.from(bytes);
  let text = '';
  // By hand, from the last digit on: ten times as fast as with a BigInt.
  for (let place = 0; place < digits; place++) {
    let remainder = 0;
    for (let index = 0; index < quotient.length; index++) {
      const dividend = remainder * 256 + (quotient[index] as number);
      quotient[index] = dividend / 62;
      remainder = dividend % 62;
    }
    text = DIGITS[remainder] + text;
  }
  return text;
}
