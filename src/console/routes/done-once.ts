// A double click sends a form twice. Each form carries a value of its own, and what was done for that value is done once:
// the second request waits for the first and gets its result. Kept in this process and for a while, which is as long as
// a click lasts.

export class DoneOnce<Result> {
  readonly #max: number;
  readonly #results = new Map<string, Promise<Result>>();

  /** @param max how many results are remembered; the oldest go first */
  constructor(max = 10_000) {
    this.#max = max;
  }

  /** @param once empty for a request that was not made by a form of ours: it is done as often as it is sent */
  do(user: string, once: string, action: () => Promise<Result>): Promise<Result> {
    if (once === '') return action();
    const key = `${user} ${once}`;
    const known = this.#results.get(key);
    if (known !== undefined) return known;
    const result = action();
    this.#results.set(key, result);
    result.catch(() => this.#results.delete(key));
    const oldest = this.#results.keys().next().value;
    if (this.#results.size > this.#max && oldest !== undefined) this.#results.delete(oldest);
    return result;
  }
}
