// The source of all randomness in a simulation: the random number generator sfc32.

export class Chance {
  /** `| 0` makes the number a signed 32-bit integer. With a larger number, V8 would store this field as a double. */
  #a = 0x9e3779b9 | 0;
  #b = 0x243f6a88;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#c = seed | 0;
    for (let round = 0; round < 12; round++) this.#next();
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  share(): number {
    return this.#next() / 2 ** 32;
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.share() * (most - least + 1));
  }

  /** Draws no random number if `rate` is 0. */
  happens(rate: number): boolean {
    return rate > 0 && this.share() < rate;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.share() * items.length)] as Item;
  }

  delay(meanMs: number): number {
    return -Math.log(1 - this.share()) * meanMs;
  }

  tail(): string {
    const digits = (this.#next() >>> 8).toString(16).padStart(6, '0');
    return digits + (this.#next() >>> 8).toString(16).padStart(6, '0');
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.#next() >>> 24);
  }

  half<Item>(items: readonly Item[]): Item[] {
    return items.filter(() => this.share() < 0.5);
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}
