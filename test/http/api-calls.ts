// For the tests: the paths of the API, and a valid request for each path.

import { randomUUID } from 'node:crypto';

export const WRITES: readonly string[] = [
  '/add',
  '/subtract',
  '/refund',
  '/start-cycle',
  '/stop-cycle',
  '/hold',
  '/capture',
  '/release',
];
export const READS: readonly string[] = [
  '/get-active-balance',
  '/get-holds',
  '/get-balance-history',
  '/get-all-user-transactions',
];

/** The paths of reads that have no `end_user_id`, because they return data of the whole account. */
export const ACCOUNT_READS: readonly string[] = ['/get-events'];

/** The paths of POST requests that write nothing. */
export const PREVIEWS: readonly string[] = ['/preview-change'];

const REQUIRED: Readonly<Record<string, () => Readonly<Record<string, unknown>>>> = {
  '/add': () => ({ amount: 1 }),
  '/subtract': () => ({ amount: 1 }),
  '/refund': () => ({ transaction_id: randomUUID() }),
  '/start-cycle': () => ({ amount: 1 }),
  '/stop-cycle': () => ({}),
  '/preview-change': () => ({ amount: 1, on_active: 'replace' }),
  '/hold': () => ({ amount: 1 }),
  '/capture': () => ({ hold_id: randomUUID() }),
  '/release': () => ({ hold_id: randomUUID() }),
};

/**
 * Returns valid fields for a request. A hold or transaction ID in the fields is random, so nothing with this ID exists.
 */
export function fieldsOf(path: string, endUser: string): Readonly<Record<string, unknown>> {
  return { end_user_id: endUser, ...REQUIRED[path.replace(/^\/v1/, '')]?.() };
}
