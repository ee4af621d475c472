// A pool that accounts share: each may hold as much as it leaves free. A single account has half, two have a third each, and
// there is always room for another. Nothing has to be taken back when one comes.

export class FairShare {
  readonly max: number;
  readonly #held = new Map<number, number>();
  #total = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** What all accounts hold. */
  get total(): number {
    return this.#total;
  }

  heldBy(account: number): number {
    return this.#held.get(account) ?? 0;
  }

  /** Whether an account would leave free as much as it holds. */
  hasRoom(account: number, amount: number): boolean {
    return this.heldBy(account) + amount <= this.max - this.#total - amount;
  }

  /** Takes without asking for room. */
  take(account: number, amount: number): void {
    this.#total += amount;
    this.#held.set(account, this.heldBy(account) + amount);
  }

  release(account: number, amount: number): void {
    this.#total -= amount;
    const held = this.heldBy(account) - amount;
    if (held === 0) this.#held.delete(account);
    else this.#held.set(account, held);
  }
}
