// The secrets that sign webhooks, and their encryption in the database. The encryption key is kept outside the
// database, in a setting or in a file, so that a copy of the database does not disclose the secrets.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CannotOpen } from '../../store/store-fault.ts';
import { NewFile } from '../../store/tools/new-file.ts';

const SECRET_BYTES = 24;
const SECRET_PREFIX = 'whsec_';
const KEY = /^[0-9a-f]{64}$/i;
const KEY_BYTES = 32;
const CIPHER = 'aes-256-gcm';
/** NIST SP 800-38D recommends these lengths for GCM. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Thrown if a key or a secret cannot be used. The message contains neither the key nor the secret. */
export class UnusableSecret extends Error {
  override readonly name = 'UnusableSecret';
}

/** Creates a secret in the format of Standard Webhooks. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** Decodes the base64 text after the prefix of a secret. */
export function secretBytes(secret: string): Buffer {
  return Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
}

/** Encrypts and decrypts strings that are stored in the database. */
export class SecretBox {
  readonly #key: Buffer;

  /** @param key 64 hexadecimal digits */
  constructor(key: string) {
    if (!KEY.test(key))
      throw new UnusableSecret('The key that encrypts webhook secrets must be 64 hexadecimal digits.');
    this.#key = Buffer.from(key, 'hex');
  }

  seal(text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv);
    return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64');
  }

  /** @throws UnusableSecret if the text was encrypted with another key or was modified */
  open(sealed: string): string {
    try {
      const bytes = Buffer.from(sealed, 'base64');
      const iv = bytes.subarray(0, IV_BYTES);
      const decipher = createDecipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch {
      throw new UnusableSecret(
        'A webhook secret cannot be decrypted: it was encrypted with another key, or it is damaged. Set WEBHOOK_KEY to the key that encrypted the secret, or rotate the secret.',
      );
    }
  }
}

/**
 * @param key 64 hexadecimal digits; null to read the key from `file`, which is created if it does not exist
 * @throws UnusableSecret if `key` or the content of the file is not a valid key; CannotOpen if the file cannot be
 * created or read
 */
export function openSecretBox({ key, file }: { readonly key: string | null; readonly file: string }): SecretBox {
  return new SecretBox(key ?? keyIn(file));
}

function keyIn(file: string): string {
  let key = '';
  try {
    if (!existsSync(file)) createKey(file);
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { message } = ((error as Error).cause ?? error) as Error;
    throw new CannotOpen(
      `Scrip cannot create or read ${file} (${message}). This file contains the key that encrypts webhook secrets. Give Scrip access to the file, or set WEBHOOK_KEY.`,
    );
  }
  if (KEY.test(key)) return key;
  throw new UnusableSecret(
    `${file} must contain a key of 64 hexadecimal digits. Restore the file from a backup, or set WEBHOOK_KEY to the key.`,
  );
}

/** If another process creates the file at the same time, the key of that process is used. */
function createKey(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  try {
    using created = new NewFile(file);
    writeFileSync(created.partial, `${randomBytes(KEY_BYTES).toString('hex')}\n`);
    created.publish();
  } catch (error) {
    if (!existsSync(file)) throw error;
  }
}
