// The key of an end user's rows. Its first column is the bucket, by which Citus distributes the tables. Each row stores
// the bucket, so `bucketOf` must never change.

import { crc32 } from 'node:zlib';
import type { EndUserKey } from '../../../ledger/command.ts';

/** The number of buckets. Citus can distribute the tables over at most this many machines. */
export const BUCKETS = 64;

export type Key = readonly [bucket: number, account: number, endUser: string];

export const KEY = 'bucket, account, end_user';
export const KEY_TYPES = ['smallint', 'integer', 'uuid'] as const;

/** SQL condition for the rows of one end user. The first three parameters are the end user's key. */
export const OF_END_USER = 'bucket = $1 AND account = $2 AND end_user = $3';

/** No transaction ID sorts after this one. */
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export function bucketOf({ account, endUser }: EndUserKey): number {
  return crc32(`${account}/${endUser}`) % BUCKETS;
}

export function keyOf(user: EndUserKey): Key {
  return [bucketOf(user), user.account, user.endUser];
}

/** SQL condition: the row of `table` belongs to the end user in row `k`. */
export function sameKey(table: string): string {
  return `${table}.bucket = k.bucket AND ${table}.account = k.account AND ${table}.end_user = k.end_user`;
}

export function compareEndUsers(a: EndUserKey, b: EndUserKey): number {
  return a.account - b.account || (a.endUser < b.endUser ? -1 : a.endUser > b.endUser ? 1 : 0);
}
