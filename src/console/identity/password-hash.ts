// Passwords as they are stored: argon2id, with the parameters that the OWASP Password Storage Cheat Sheet recommends,
// in the PHC string format, so that the parameters can change and old hashes still be checked. Node computes them off
// the main thread; no more than a few at once, since each takes 19 MiB and a thread that others need as well.

import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto';

/** 24 to 27 ms a hash, and 40 at the 95th percentile: three runs of 60, on two cores that were busy with other work. */
const PARAMETERS = { memory: 19_456, passes: 2, parallelism: 1 };
const NONCE_BYTES = 16;
const TAG_BYTES = 32;

const AT_ONCE = 2;
const WAITING_MAX = 100;

const FORM = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([0-9A-Za-z+/]+)\$([0-9A-Za-z+/]+)$/;

/** Too many wait for their password to be hashed. */
export class TooBusy extends Error {
  override readonly name = 'TooBusy';
}

export class PasswordHash {
  /** How many have been computed. That a wrong address takes as long as a wrong password is seen here. */
  computed = 0;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** @throws TooBusy */
  async hash(password: string): Promise<string> {
    const nonce = randomBytes(NONCE_BYTES);
    const tag = await this.#compute(password, nonce, PARAMETERS, TAG_BYTES);
    const { memory, passes, parallelism } = PARAMETERS;
    return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`;
  }

  /** @throws TooBusy */
  async verify(password: string, stored: string): Promise<boolean> {
    const [, memory, passes, parallelism, nonce, tag] = FORM.exec(stored) ?? [];
    if (nonce === undefined || tag === undefined) return false;
    const expected = Buffer.from(tag, 'base64');
    const parameters = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
    const found = await this.#compute(password, Buffer.from(nonce, 'base64'), parameters, expected.length);
    return timingSafeEqual(found, expected);
  }

  async #compute(password: string, nonce: Buffer, parameters: typeof PARAMETERS, tagLength: number): Promise<Buffer> {
    await this.#turn();
    try {
      this.computed += 1;
      // Two ways of typing the same letter are one password.
      const message = Buffer.from(password.normalize('NFKC'));
      return await derive({ ...parameters, message, nonce, tagLength });
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < AT_ONCE) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= WAITING_MAX) throw new TooBusy('too many passwords wait to be hashed');
    await new Promise<void>((resolve) => void this.#waiting.push(resolve));
  }
}

function derive(parameters: Argon2Parameters): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    argon2('argon2id', parameters, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

/** PHC strings have no padding. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
