// Makes the paths and query strings of hostile reads.

import type { Random } from '../load/random.ts';

const PATHS = [
  '/get-active-balance',
  '/get-all-user-transactions',
  '/get-balance-history',
  '/get-events',
  '/get-holds',
  '/test-clock',
];
const FIELDS = ['at', 'from', 'to', 'interval', 'cursor', 'kind', 'note_prefix', 'details', 'limit', 'types', 'after'];
const VALUES = [
  ...['', '0', '1', '-1', '1001', '1e3', '9007199254740993', 'NaN', 'null', 'true', 'day', 'month', 'add', 'add,hold'],
  ...['2026-11-20', '2026-11-20T08:00:00Z', '2026-11-20T08:00:00.123%2B02:00', '0000-01-01T00:00:00Z'],
  ...['9999-12-31T23:59:59.999Z', '2026-13-01T00:00:00Z', '2026-11-20T25:00:00Z', 'now', '%00', '%ff', '%F0%9F%8D%95'],
  ...['eyJsYXN0IjoiMCJ9', 'AAAA', '../..', `${'9'.repeat(400)}`, "'%20OR%201=1--", '__proto__', '%25', '[]', '{}'],
];
const FIELDS_MAX = 4;

export function hostileQuery(random: Random, user: string): string {
  const pairs = Array.from(
    { length: 1 + random.below(FIELDS_MAX) },
    () => `${random.pick(FIELDS)}=${random.pick(VALUES)}`,
  );
  return `${random.pick(PATHS)}?${[`end_user_id=${user}`, ...pairs].join('&')}`;
}
