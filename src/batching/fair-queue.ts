// A queue that is fair to accounts: each account gets an equal share of the items that are taken out. The items of one
// account are taken in the order of arrival.

interface Account<T> {
  readonly account: number;
  readonly items: T[];
}

export class FairQueue<T> {
  readonly #accounts = new Map<number, Account<T>>();
  /** The accounts with items, in the order in which they are served. */
  readonly #turns: Account<T>[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(account: number, item: T): void {
    this.#length += 1;
    const own = this.#accounts.get(account);
    if (own !== undefined) {
      own.items.push(item);
      return;
    }
    const added = { account, items: [item] };
    this.#accounts.set(account, added);
    this.#turns.push(added);
  }

  take(): T | undefined {
    const own = this.#turns.shift();
    if (own === undefined) return undefined;
    const item = own.items.shift();
    if (own.items.length > 0) this.#turns.push(own);
    else this.#accounts.delete(own.account);
    this.#length -= 1;
    return item;
  }
}
