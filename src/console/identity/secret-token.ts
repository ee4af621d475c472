// Random tokens for session cookies, invitations and mailed links. The database stores only the SHA-256 of a token. A
// token has 256 random bits, so a fast hash without a salt is enough.

import { hash, randomBytes } from 'node:crypto';

const BYTES = 32;

export function newToken(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** @returns the hash as 64 hexadecimal digits */
export function sha256Of(text: string): string {
  return hash('sha256', text, 'hex');
}
