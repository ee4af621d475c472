// The statements by which a copy enters rows as they were, many at a time.

import { CYCLE, CYCLE_TYPES, KEY_TYPES, POSTING, POSTING_TYPES, unnest } from './statements.ts';

export const INSERTS = {
  cycle: insert('cycles', CYCLE, CYCLE_TYPES),
  posting: insert('postings', POSTING, POSTING_TYPES),
  'end-user': insert('end_users', 'latest', ['uuid']),
};

function insert(table: string, names: string, types: readonly string[]): { text: string; columns: number } {
  const all = [...KEY_TYPES, ...types];
  return {
    text: `INSERT INTO scrip.${table} (bucket, account, end_user, ${names}) SELECT * FROM ${unnest(all)}`,
    columns: all.length,
  };
}
