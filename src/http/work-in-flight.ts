// The requests that are being worked on, and whose they are. A socket can start any number by pipelining, and an account
// has any number of sockets, so the bound is one for the process, and each account may hold as many places as it leaves
// free: alone it has half of all, two have a third each, and whoever comes next always finds room.

/** Requests being worked on at once, whoever sends them. */
export const IN_FLIGHT_MAX = 10_000;

/** What an account can hold of them when no other is there. */
export const IN_FLIGHT_ALONE_MAX = IN_FLIGHT_MAX / 2;

/** Where a request is counted: with its account, or with nobody until it is known whose it is. */
export interface Holder {
  readonly account: number | null;
  requests: number;
  /** Of these, lists that are being read by their clients, however slowly. */
  streams: number;
}

const NOBODY: Holder = { account: null, requests: 0, streams: 0 };

/** One for the process: the paths and their alias share it. */
export class WorkInFlight {
  /** Called whenever a request leaves. */
  onRoom: () => void = () => {};
  readonly #max: number;
  readonly #holders = new Map<number, Holder>();
  #requests = 0;

  constructor(max: number = IN_FLIGHT_MAX) {
    this.#max = max;
  }

  get requests(): number {
    return this.#requests;
  }

  get isFull(): boolean {
    return this.#requests >= this.#max;
  }

  /** Those of the account that somebody here is busy with. */
  busyWith(account: number): number {
    const holder = this.#holders.get(account);
    return holder === undefined ? 0 : holder.requests - holder.streams;
  }

  /** Whether the account may have so many more. */
  hasRoom(account: number, more = 1): boolean {
    return (this.#holders.get(account)?.requests ?? 0) + more <= this.#max - this.#requests;
  }

  /** A request whose account is not known yet. */
  enter(): Holder {
    this.#requests += 1;
    return NOBODY;
  }

  /** @returns where the request, which has entered, is counted from now on; null when its account has its share */
  claim(account: number): Holder | null {
    const holder = this.#holders.get(account);
    if ((holder?.requests ?? 0) > this.#max - this.#requests) return null;
    if (holder !== undefined) {
      holder.requests += 1;
      return holder;
    }
    const first = { account, requests: 1, streams: 0 };
    this.#holders.set(account, first);
    return first;
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
