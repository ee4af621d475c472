// The requests that are being worked on, and whose they are. A socket can start any number by pipelining, and an account
// has any number of sockets, so the bound is one for the process, and each account may hold as many places as it leaves
// free: alone it has half of all, two have a third each, and whoever comes next always finds room. Where the store is so
// slow that the last of them would wait for long, an account has fewer: whoever would is better told at once.

/** Requests being worked on at once, whoever sends them. */
export const IN_FLIGHT_MAX = 10_000;

/** What an account can hold of them when no other is there. */
export const IN_FLIGHT_ALONE_MAX = IN_FLIGHT_MAX / 2;

/** What an account that is alone has under way is done within this time, unless it has no more than the least. */
export const WAIT_MS_MAX = 500;
/** However slow the store is: four full batches. */
export const IN_FLIGHT_ALONE_MIN = 2_048;
/** However slow the store is, and whatever others have: one. */
const IN_FLIGHT_SHARE_MIN = 512;

/** Where a request is counted: with its account, or with nobody until it is known whose it is. */
export interface Holder {
  readonly account: number | null;
  requests: number;
  /** Of these, lists that are being read by their clients, however slowly, or wait for their turn. */
  streams: number;
}

const NOBODY: Holder = { account: null, requests: 0, streams: 0 };

/** One for the process: the paths and their alias share it. */
export class WorkInFlight {
  /** Called whenever a request leaves. */
  onRoom: () => void = () => {};
  readonly #max: number;
  readonly #perMs: () => number | null;
  readonly #holders = new Map<number, Holder>();
  #requests = 0;

  /** @param perMs how many the store does in a millisecond, where that is known */
  constructor(max: number = IN_FLIGHT_MAX, perMs: () => number | null = () => null) {
    this.#max = max;
    this.#perMs = perMs;
  }

  get requests(): number {
    return this.#requests;
  }

  get isFull(): boolean {
    return this.#requests >= this.#max;
  }

  /** Whether an account has room even if all that is under way is its own. */
  get isCalm(): boolean {
    return this.#requests < IN_FLIGHT_ALONE_MIN || this.#mayHave(this.#requests + 1, this.#requests);
  }

  /** Those of the account that somebody here is busy with. */
  busyWith(account: number): number {
    const holder = this.#holders.get(account);
    return holder === undefined ? 0 : holder.requests - holder.streams;
  }

  /** Whether the account may have so many more. */
  hasRoom(account: number, more = 1): boolean {
    return this.#mayHave((this.#holders.get(account)?.requests ?? 0) + more, this.#requests);
  }

  /**
   * @param own of an account, with those that it asks for
   * @param all of all accounts, without them
   */
  #mayHave(own: number, all: number): boolean {
    if (own > this.#max - all) return false;
    const perMs = this.#perMs();
    if (perMs === null || own <= IN_FLIGHT_SHARE_MIN) return true;
    // Half of these for one that is alone, as of all places.
    const inTime = Math.max(2 * IN_FLIGHT_ALONE_MIN, 2 * WAIT_MS_MAX * perMs);
    return own <= inTime - all;
  }

  /** A request whose account is not known yet. */
  enter(): Holder {
    this.#requests += 1;
    return NOBODY;
  }

  /** @returns where the request, which has entered, is counted from now on; null when its account has its share */
  claim(account: number): Holder | null {
    const holder = this.#holders.get(account);
    if (!this.#mayHave((holder?.requests ?? 0) + 1, this.#requests - 1)) return null;
    if (holder !== undefined) {
      holder.requests += 1;
      return holder;
    }
    const first = { account, requests: 1, streams: 0 };
    this.#holders.set(account, first);
    return first;
  }

  /** A request that waits for its turn or its client from now on: nobody here is busy with it. */
  stepAside(holder: Holder): void {
    holder.streams += 1;
    this.onRoom();
  }

  stepBack(holder: Holder): void {
    holder.streams -= 1;
  }

  /** A list that is sent from now on, which nobody can refuse any more. */
  beginStream(holder: Holder): void {
    this.#requests += 1;
    if (holder.account === null) return;
    holder.requests += 1;
    holder.streams += 1;
    this.#holders.set(holder.account, holder);
  }

  endStream(holder: Holder): void {
    holder.streams -= 1;
    this.leave(holder);
  }

  leave(holder: Holder): void {
    this.#requests -= 1;
    if (holder.account !== null) {
      holder.requests -= 1;
      if (holder.requests === 0) this.#holders.delete(holder.account);
    }
    this.onRoom();
  }
}
