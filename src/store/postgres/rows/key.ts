// The key of all rows of an end user. It begins with a bucket, by which the tables are distributed where there are several
// machines. The bucket is stored with each row, so it can never change.

import { crc32 } from 'node:zlib';
import type { EndUserKey } from '../../../ledger/command.ts';

/** As many machines as the tables can be spread over. */
export const BUCKETS = 64;

export type Key = readonly [bucket: number, account: number, endUser: string];

export const KEY = 'bucket, account, end_user';
export const KEY_TYPES = ['smallint', 'integer', 'uuid'] as const;

/** SQL: a row of one end user, whose key is in the first three parameters. */
export const OF_END_USER = 'bucket = $1 AND account = $2 AND end_user = $3';

export function bucketOf({ account, endUser }: EndUserKey): number {
  return crc32(`${account}/${endUser}`) % BUCKETS;
}

export function keyOf(user: EndUserKey): Key {
  return [bucketOf(user), user.account, user.endUser];
}

/** SQL: a row of `table` is of the end user in row `k`. */
export function sameKey(table: string): string {
  return `${table}.bucket = k.bucket AND ${table}.account = k.account AND ${table}.end_user = k.end_user`;
}

export function compareEndUsers(a: EndUserKey, b: EndUserKey): number {
  return a.account - b.account || (a.endUser < b.endUser ? -1 : a.endUser > b.endUser ? 1 : 0);
}
