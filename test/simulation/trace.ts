// Keeps the last lines of a simulation's trace, and hashes all lines, so that runs can be compared.

import { createHash } from 'node:crypto';

const TAIL_LINES = 60;
const TAIL_CHARACTERS = 400;
const HASHED_AT_ONCE_BYTES = 65_536;

/** A line is kept in two parts, because joining the parts would copy a long document. */
type Line = readonly [begin: string, document: string];

export class Trace {
  readonly #onLine: ((line: string) => void) | null;
  readonly #hash = createHash('sha256');
  readonly #unhashed = Buffer.allocUnsafe(HASHED_AT_ONCE_BYTES);
  #unhashedBytes = 0;
  readonly #tail: Line[] = [];
  #lines = 0;

  constructor(onLine: ((line: string) => void) | null) {
    this.#onLine = onLine;
  }

  note(begin: string, document: string): void {
    this.#add(begin);
    this.#add(document);
    this.#tail[this.#lines % TAIL_LINES] = [begin, document];
    this.#lines += 1;
    this.#onLine?.(begin + document);
  }

  /** Can be called only once. */
  hash(): string {
    this.#hashBytes();
    return this.#hash.digest('hex');
  }

  tail(): string[] {
    const oldest = this.#lines % TAIL_LINES;
    const lines = [...this.#tail.slice(oldest), ...this.#tail.slice(0, oldest)];
    return lines.map(([begin, document]) => (begin + document.slice(0, TAIL_CHARACTERS)).slice(0, TAIL_CHARACTERS));
  }

  /** Hashes only the low byte of each character: few characters have a code above 255. */
  #add(text: string): void {
    if (text.length > HASHED_AT_ONCE_BYTES - this.#unhashedBytes) this.#hashBytes();
    if (text.length > HASHED_AT_ONCE_BYTES) this.#hash.update(text, 'latin1');
    else this.#unhashedBytes += this.#unhashed.write(text, this.#unhashedBytes, 'latin1');
  }

  #hashBytes(): void {
    this.#hash.update(this.#unhashed.subarray(0, this.#unhashedBytes));
    this.#unhashedBytes = 0;
  }
}
