// The workloads of the benchmarks as data. `load.lua` must compute the same end user IDs as this file.

export type Call = 'add' | 'subtract' | 'balance' | 'first-page';

export interface Group {
  readonly first: number;
  readonly users: number;
  /** The number of open one-time cycles per end user; `renewing` means one recurring cycle that is due to renew. */
  readonly cycles: number | 'renewing';
  /** The number of transactions per end user, including those that opened the cycles. */
  readonly transactions: number;
}

export interface Workload {
  readonly name: string;
  readonly group: Group;
  /** The number of end users that get requests. Default: all end users of the group. */
  readonly users?: number;
  readonly shares: Readonly<Partial<Record<Call, number>>>;
  readonly keyed?: boolean;
}

/** Below this limit, `load.lua` can multiply a number by `SPREAD` exactly, since the product fits in 53 bits. */
const NUMBER_MAX = 3_000_000;
/** 2^32 divided by the golden ratio. With this factor, the IDs of successive numbers are far apart. */
const SPREAD = 2_654_435_761;

/** More credits than a benchmark subtracts. */
export const CREDITS = 1_000_000_000_000;
export const PAGE_LIMIT = 100;

const crowd = (users: number): Group => ({ first: 0, users, cycles: 1, transactions: 2 });

export const CROWD_SMALL = crowd(10_000);
export const CROWD_MEDIUM = crowd(100_000);
export const CROWD_LARGE = crowd(1_000_000);

export const TEN_CYCLES: Group = { first: 2_000_000, users: 200, cycles: 10, transactions: 11 };
export const FIFTY_CYCLES: Group = { first: 2_010_000, users: 200, cycles: 50, transactions: 51 };
export const THOUSAND_CYCLES: Group = { first: 2_020_000, users: 200, cycles: 1_000, transactions: 1_001 };
export const SHORT_HISTORY: Group = { first: 2_030_000, users: 1, cycles: 1, transactions: 100 };
export const LONG_HISTORY: Group = { first: 2_040_000, users: 1, cycles: 1, transactions: 1_000_000 };
export const RENEWING: Group = { first: 1_000_000, users: 1_000_000, cycles: 'renewing', transactions: 1 };

/**
 * The number of end users in each group with many cycles. A workload that is the baseline for such a group also uses
 * only this many end users, although its own group is larger.
 */
const FEW = FIFTY_CYCLES.users;

export const subtractOf = (group: Group, name: string): Workload => ({ name, group, shares: { subtract: 100 } });
export const balanceOf = (group: Group, name: string): Workload => ({
  name,
  group,
  users: Math.min(FEW, group.users),
  shares: { balance: 100 },
});
const pageOf = (group: Group, name: string): Workload => ({ name, group, shares: { 'first-page': 100 } });

export const SUBTRACT_SMALL = subtractOf(CROWD_SMALL, 'subtract, 10,000 users');
export const SUBTRACT_MEDIUM = subtractOf(CROWD_MEDIUM, 'subtract, 100,000 users');
export const SUBTRACT_LARGE = subtractOf(CROWD_LARGE, 'subtract, 1,000,000 users');
export const ADD_MEDIUM: Workload = { name: 'add, 100,000 users', group: CROWD_MEDIUM, shares: { add: 100 } };
export const BALANCE_MEDIUM: Workload = {
  name: 'balance, 100,000 users',
  group: CROWD_MEDIUM,
  shares: { balance: 100 },
};
/** So few end users that Scrip on SQLite caches all of them. */
export const BALANCE_REPEATED: Workload = {
  ...BALANCE_MEDIUM,
  name: 'balance, 10,000 of 100,000 users',
  users: CROWD_SMALL.users,
};
export const BALANCE_SMALL: Workload = { name: 'balance, 10,000 users', group: CROWD_SMALL, shares: { balance: 100 } };
export const BALANCE_LARGE: Workload = {
  name: 'balance, 1,000,000 users',
  group: CROWD_LARGE,
  shares: { balance: 100 },
};
export const HOT_USER: Workload = {
  name: 'subtract, one hot user',
  group: CROWD_SMALL,
  users: 1,
  shares: { subtract: 100 },
};
export const MIX: Workload = {
  name: '70 % subtract, 20 % balance, 10 % add',
  group: CROWD_SMALL,
  shares: { subtract: 70, balance: 20, add: 10 },
};
export const SUBTRACT_KEYED: Workload = { ...SUBTRACT_SMALL, name: 'subtract, with idempotency keys', keyed: true };
export const SUBTRACT_ONE_CYCLE: Workload = { ...subtractOf(CROWD_SMALL, 'subtract, 1 open cycle'), users: FEW };
export const SUBTRACT_FIFTY_CYCLES = subtractOf(FIFTY_CYCLES, 'subtract, 50 open cycles');
export const SUBTRACT_THOUSAND_CYCLES = subtractOf(THOUSAND_CYCLES, 'subtract, 1,000 open cycles');
export const SUBTRACT_LONG_HISTORY = subtractOf(LONG_HISTORY, 'subtract, 1,000,000 past transactions');
export const BALANCE_ONE_CYCLE = balanceOf(CROWD_SMALL, 'balance, 1 cycle');
export const BALANCE_TEN_CYCLES = balanceOf(TEN_CYCLES, 'balance, 10 cycles');
export const BALANCE_THOUSAND_CYCLES = balanceOf(THOUSAND_CYCLES, 'balance, 1,000 cycles');
export const PAGE_SHORT_HISTORY = pageOf(SHORT_HISTORY, 'first page of 100 transactions');
export const PAGE_LONG_HISTORY = pageOf(LONG_HISTORY, 'first page of 1,000,000 transactions');

export function endUserId(number: number): string {
  if (number >= NUMBER_MAX) throw new RangeError(`the number of an end user must be below ${NUMBER_MAX}`);
  const spread = (Math.imul(number, SPREAD) >>> 0).toString(16).padStart(8, '0');
  return `${spread}-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string | null;
  readonly idempotencyKey: string | null;
}

export class RequestSource {
  readonly #workload: Workload;
  readonly #random: () => number;
  readonly #keyPrefix: string;
  #keys = 0;

  constructor(workload: Workload, random: () => number) {
    this.#workload = workload;
    this.#random = random;
    this.#keyPrefix = `bench-${Math.floor(random() * 2 ** 48).toString(16)}`;
  }

  next(): Request {
    const { group, users = group.users, keyed = false } = this.#workload;
    const endUser = endUserId(group.first + Math.floor(this.#random() * users));
    const call = this.#draw();
    if (call === 'balance' || call === 'first-page')
      return { method: 'GET', path: pathOf(call, endUser), body: null, idempotencyKey: null };
    const idempotencyKey = keyed ? `${this.#keyPrefix}-${++this.#keys}` : null;
    return { method: 'POST', path: `/${call}`, body: `{"end_user_id":"${endUser}","amount":1}`, idempotencyKey };
  }

  #draw(): Call {
    const shares = Object.entries(this.#workload.shares) as [Call, number][];
    let at = this.#random() * 100;
    for (const [call, share] of shares) {
      at -= share;
      if (at < 0) return call;
    }
    return (shares.at(-1) as [Call, number])[0];
  }
}

function pathOf(call: 'balance' | 'first-page', endUser: string): string {
  if (call === 'balance') return `/get-active-balance?end_user_id=${endUser}`;
  return `/get-all-user-transactions?end_user_id=${endUser}&limit=${PAGE_LIMIT}`;
}

export function bytesOf({ method, path, body, idempotencyKey }: Request, secret: string): string {
  const key = idempotencyKey === null ? '' : `Idempotency-Key: ${idempotencyKey}\r\n`;
  const head = `${method} ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${secret}\r\n${key}`;
  if (body === null) return `${head}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
