// A queue that is fair to accounts: each account gets an equal share of the items that are taken out. The items of one
// account are taken in the order of arrival.

export class FairQueue<T> {
  /** Items by account, in the order in which accounts are served. */
  readonly #items = new Map<number, T[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(account: number, item: T): void {
    this.#length += 1;
    const own = this.#items.get(account);
    if (own === undefined) this.#items.set(account, [item]);
    else own.push(item);
  }

  takeOne(): T | undefined {
    const [next] = this.#items;
    if (next === undefined) return undefined;
    const [account, own] = next;
    this.#items.delete(account);
    const item = own.shift();
    if (own.length > 0) this.#items.set(account, own);
    this.#length -= 1;
    return item;
  }

  /** Takes up to `max` items, in rounds. Each round divides what is left of `max` equally among the accounts. */
  take(max: number): T[] {
    const taken: T[] = [];
    while (taken.length < max && this.#items.size > 0) this.#takeRound(taken, max);
    this.#length -= taken.length;
    return taken;
  }

  #takeRound(taken: T[], max: number): void {
    let accounts = this.#items.size;
    const share = Math.max(1, Math.floor((max - taken.length) / accounts));
    for (const [account, own] of this.#items) {
      if (accounts === 0 || taken.length >= max) return;
      accounts -= 1;
      const portion = own.length <= share ? own : own.splice(0, share);
      // Move the account to the end, so that the next call first serves the accounts that got nothing in this call.
      this.#items.delete(account);
      if (portion !== own) this.#items.set(account, own);
      for (const item of portion) taken.push(item);
    }
  }
}
