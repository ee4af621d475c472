// Which of the buckets an end user is in. It is stored with each row, so it can never change.

import { crc32 } from 'node:zlib';
import type { EndUserKey } from '../../ledger/command.ts';

/** As many machines as the tables can be spread over. */
export const BUCKETS = 64;

export function bucketOf({ account, endUser }: EndUserKey): number {
  return crc32(`${account}/${endUser}`) % BUCKETS;
}

/** What to ask for where Citus answers for one shard only: each bucket by itself; elsewhere null, which is all of them. */
export function bucketsApart(isCitus: boolean): readonly (number | null)[] {
  return isCitus ? Array.from({ length: BUCKETS }, (_, bucket) => bucket) : [null];
}
