// Written by `node client/generate.ts` from the OpenAPI document of the service: change that, not this. The words are
// those of the interface, so that what its documentation calls a field is what the field is called here.
// biome-ignore-all format: written by a program

export interface AddRequest {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
  /** Days of 24 hours that the credits are valid; null or absent means 31. No upper limit: an end past the year 9999 is 9999-12-31T23:59:59.999Z. */
  readonly validity_days?: number | null;
}

export interface SubtractRequest {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
}

export interface StartCycleRequest {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
  /** Days of 24 hours that the credits are valid; null or absent means 31. No upper limit: an end past the year 9999 is 9999-12-31T23:59:59.999Z. */
  readonly validity_days?: number | null;
  /** When a cycle is active, stop it and start the new one in one step. Without this, the answer is CycleAlreadyActive. */
  readonly on_active?: 'replace';
}

export interface StopCycleRequest {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
}

export interface Addition {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
}

export interface Subtraction {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
}

export interface Cycle {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Credits, a whole number. */
  readonly amount: number;
  /** When the cycle was started; UTC, without a suffix. */
  readonly created_at: string;
  readonly current_cycle_start: string;
  readonly current_cycle_end: string;
  readonly cycle_type: 'recurring' | 'one-time';
  /** `canceled` for a stopped cycle, which is not renewed. */
  readonly status: 'active' | 'canceled';
}

export interface CycleEntry {
  readonly cycle_start: string;
  readonly cycle_end: string;
  /** What is left of it. */
  readonly amount: number;
  /** What it started with. */
  readonly starting_amount: number;
  /** `canceled` for a stopped cycle, which is not renewed. */
  readonly status: 'active' | 'canceled';
  readonly cycle_type: 'recurring' | 'one-time';
}

export interface Balance {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Every cycle that has not ended, oldest first. */
  readonly active_balance_by_cycle: readonly CycleEntry[];
  /** The sum over the cycles. */
  readonly active_balance: number;
}

export interface Transaction {
  /** Ids of an end user sort by creation. */
  readonly transaction_id: string;
  /** Positive for credits that start a cycle or are added, negative for a subtraction. */
  readonly amount: number;
  readonly created_at: string;
  /** The instant after which it no longer bears on the balance. */
  readonly expire_at: string;
}

export interface TransactionList {
  /** The end user: any UUID that you choose. */
  readonly end_user_id: string;
  /** Most recent first. */
  readonly transactions: readonly Transaction[];
  /** Only with `limit` or `cursor`: the `cursor` of the next page, or null when there are no more transactions. */
  readonly next_cursor?: string | null;
}

export interface Problem {
  /** A path of the service that tells status and title. */
  readonly type: string;
  /** What the error is, the same each time. */
  readonly title: string;
  /** The status of the answer. */
  readonly status: number;
  /** The name to program against. New ones may come. */
  readonly error: string;
  /** To be found again in the log of the server. */
  readonly request_id: string;
  /** What is particular to this occurrence. */
  readonly detail: string;
  /** `InvalidField`: each field that is missing, unknown or out of bounds. */
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
  /** `InsufficientFunds`, `BalanceTooLarge`: the credits of the request. */
  readonly requested?: number;
  /** `InsufficientFunds`: the balance. `BalanceTooLarge`: how many credits there is room for. */
  readonly available?: number;
  /** `InsufficientFunds`: the credits that are missing. */
  readonly shortfall?: number;
  readonly cycle?: Cycle;
}

/** The errors that the operations are described with. */
export type ErrorName =
  | 'BadRequest'
  | 'BalanceTooLarge'
  | 'CycleAlreadyActive'
  | 'CycleNotFound'
  | 'Forbidden'
  | 'HeadersTooLarge'
  | 'IdempotencyKeyReused'
  | 'InsufficientFunds'
  | 'Internal'
  | 'InvalidField'
  | 'InvalidJson'
  | 'OutcomeUnknown'
  | 'Overloaded'
  | 'PayloadTooLarge'
  | 'RequestTimeout'
  | 'StoreUnavailable'
  | 'TooManyRequests'
  | 'Unauthorized'
  | 'UnsupportedMediaType';
