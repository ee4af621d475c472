// A resource that accounts share, such as the slots for requests in flight. An account can take units only if,
// afterwards, it holds no more units than remain free. A single account can therefore hold at most half of the units.
// Two accounts that keep taking and releasing units get about a third each.

export class FairShare {
  readonly max: number;
  readonly #held = new Map<number, number>();
  #total = 0;

  constructor(max: number) {
    this.max = max;
  }

  get total(): number {
    return this.#total;
  }

  heldBy(account: number): number {
    return this.#held.get(account) ?? 0;
  }

  /** Whether the account, after taking `amount` units, would hold no more units than are still free. */
  hasRoom(account: number, amount: number): boolean {
    return this.heldBy(account) + amount <= this.max - this.#total - amount;
  }

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
