// The format of API keys, and the hash that is stored instead of a key.
//
//   scrip_<scope>_<192 random bits>_<checksum>
//
// The random part has 33 base-62 digits. The checksum has 6 digits: the CRC-32 of everything before the last
// underscore. The checksum lets Scrip reject mistyped keys without a database query, and lets secret scanners recognize
// leaked keys. Only the SHA-256 of a key is stored: with 192 random bits, a slow hash would add no security.

import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** `write` includes `read`. */
export type Scope = 'read' | 'write';

export const SCOPES: readonly Scope[] = ['read', 'write'];

export const SECRET_BYTES = 24;

/** Maximum length of a key's name, in code points. */
export const KEY_NAME_CHARACTERS_MAX = 100;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_DIGITS = 33;
const CHECKSUM_DIGITS = 6;
const FORM = /^scrip_(?:read|write)_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/;

export interface ApiKey {
  readonly id: number;
  readonly account: number;
  readonly scope: Scope;
}

/** @param random `SECRET_BYTES` bytes from a cryptographically secure random number generator */
export function apiKeySecret(scope: Scope, random: Uint8Array): string {
  const body = `scrip_${scope}_${base62(random, SECRET_DIGITS)}`;
  return `${body}_${checksum(body)}`;
}

/** Whether the format and the checksum are valid. Does not check whether the key exists. */
export function isWellFormed(secret: string): boolean {
  return FORM.test(secret) && secret.slice(-CHECKSUM_DIGITS) === checksum(secret.slice(0, -CHECKSUM_DIGITS - 1));
}

/** @returns 64 hexadecimal digits */
export function hashOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Identifies a key in a list without revealing it: `scrip_write_Ab3dE6…`. */
export function hintOf(secret: string): string {
  return `${secret.slice(0, secret.lastIndexOf('_') - SECRET_DIGITS + 6)}…`;
}

function checksum(body: string): string {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, crc32(body));
  return base62(bytes, CHECKSUM_DIGITS);
}

function base62(bytes: Uint8Array, digits: number): string {
  const quotient = Uint8Array.from(bytes);
  let text = '';
  // Long division yields the last digit first and is ten times as fast as BigInt arithmetic.
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
