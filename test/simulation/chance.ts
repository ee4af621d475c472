// The source of all randomness in a simulation: one generator (sfc32) with the seed.

export class Chance {
  /** A signed integer of 32 bits like the others: V8 keeps a number that was once larger as a double. */
  #a = 0x9e3779b9 | 0;
  #b = 0x243f6a88;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#c = seed | 0;
    for (let round = 0; round < 12; round++) this.#next();
  }

  /** From 0 up to but not 1. */
  share(): number {
    return this.#next() / 2 ** 32;
  }

  /** An integer, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.share() * (most - least + 1));
  }

  /** Whether something with this probability happens. A rate of 0 draws nothing. */
  happens(rate: number): boolean {
    return rate > 0 && this.share() < rate;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.share() * items.length)] as Item;
  }

  /** Milliseconds: mostly short, rarely long. */
  delay(meanMs: number): number {
    return -Math.log(1 - this.share()) * meanMs;
  }

  /** 12 hexadecimal digits. */
  tail(): string {
    const digits = (this.#next() >>> 8).toString(16).padStart(6, '0');
    return digits + (this.#next() >>> 8).toString(16).padStart(6, '0');
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.#next() >>> 24);
  }

  /** Some of them, about half, in their order. */
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
