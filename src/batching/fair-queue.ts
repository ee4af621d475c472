// A line in which accounts take turns. What one account puts in comes out in its order; between accounts, whoever has
// much waiting gets what those leave who have little. With one account it is a plain queue.

export class FairQueue<T> {
  /** The account whose turn is next comes first. None is empty. */
  readonly #waiting = new Map<number, T[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** How many have something waiting. */
  get accounts(): number {
    return this.#waiting.size;
  }

  push(account: number, item: T): void {
    this.#length += 1;
    const own = this.#waiting.get(account);
    if (own === undefined) this.#waiting.set(account, [item]);
    else own.push(item);
  }

  /** How much of an account waits. */
  lengthOf(account: number): number {
    return this.#waiting.get(account)?.length ?? 0;
  }

  /** Takes out what the first account has waiting for longest among those whose turn it may be, by default any; its next turn comes last. */
  takeOne(mayTake: (account: number) => boolean = () => true): T | undefined {
    for (const [account, own] of this.#waiting) {
      if (!mayTake(account)) continue;
      this.#waiting.delete(account);
      const item = own.shift();
      if (own.length > 0) this.#waiting.set(account, own);
      this.#length -= 1;
      return item;
    }
    return undefined;
  }

  /** Takes out `max`, or all: in rounds, in each of which every account that waits has an equal share of what is left. */
  take(max: number): T[] {
    const taken: T[] = [];
    while (taken.length < max && this.#waiting.size > 0) this.#takeRound(taken, max);
    this.#length -= taken.length;
    return taken;
  }

  #takeRound(taken: T[], max: number): void {
    let turns = this.#waiting.size;
    const share = Math.max(1, Math.floor((max - taken.length) / turns));
    for (const [account, own] of this.#waiting) {
      if (turns === 0 || taken.length >= max) return;
      turns -= 1;
      const portion = own.length <= share ? own : own.splice(0, share);
      // Before whoever comes later, so that those who get nothing of this batch are the first of the next.
      this.#waiting.delete(account);
      if (portion !== own) this.#waiting.set(account, own);
      for (const item of portion) taken.push(item);
    }
  }
}
