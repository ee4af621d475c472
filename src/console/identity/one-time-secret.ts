// Secrets that the console gives out, in cookies and links: 192 random bits, of which only the SHA-256 is kept.

import { hash, randomBytes } from 'node:crypto';

const BYTES = 24;
const FORM = /^[0-9A-Za-z_-]{32}$/;

export function newSecret(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** Whether this can be one at all; what cannot is looked up nowhere. */
export function isSecret(text: string): boolean {
  return FORM.test(text);
}

/** What is kept of one: 64 hexadecimal digits. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'hex');
}
