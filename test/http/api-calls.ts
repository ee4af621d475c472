// The paths of the API, and valid fields for a request to each path.

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

/** These reads cover the whole account, so they have no `end_user_id`. */
export const ACCOUNT_READS: readonly string[] = ['/get-events'];

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

export function fieldsOf(path: string, endUser: string): Readonly<Record<string, unknown>> {
  return { end_user_id: endUser, ...REQUIRED[path.replace(/^\/v1/, '')]?.() };
}
