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

  take(): T | undefined {
    const [next] = this.#items;
    if (next === undefined) return undefined;
    const [account, own] = next;
    this.#items.delete(account);
    const item = own.shift();
    if (own.length > 0) this.#items.set(account, own);
    this.#length -= 1;
    return item;
  }
}
