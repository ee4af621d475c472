// The key of all rows of an end user.

import type { EndUserKey } from '../../ledger/command.ts';
import { bucketOf } from './bucket.ts';
import { RowArrays } from './row-arrays.ts';
import { KEY_TYPES } from './statements.ts';

export type Key = readonly [bucket: number, account: number, endUser: string];

export function keyOf(user: EndUserKey): Key {
  return [bucketOf(user), user.account, user.endUser];
}

export function keyArrays(keys: readonly Key[]): RowArrays {
  const arrays = new RowArrays(KEY_TYPES);
  for (const key of keys) arrays.add(...key);
  return arrays;
}
