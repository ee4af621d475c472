// The people of the console as a copy carries them from one store to another: who they are, the hashes of their passwords,
// to which account they belong, and by which links more may join. Sessions, links in mails and counts of attempts stay
// behind: everybody signs in anew.

/** How a value travels: text and numbers as they are, a flag as 0 or 1, a time as ISO 8601 in UTC with milliseconds. */
export type ColumnKind = 'text' | 'integer' | 'flag' | 'time';

/** In an order in which each row finds those that it refers to. The first column of each is its key. */
export const PEOPLE_TABLES = {
  console_users: {
    id: 'text',
    email: 'text',
    email_verified: 'flag',
    name: 'text',
    image: 'text',
    created_at: 'time',
    updated_at: 'time',
  },
  // What other services gave out is not among the columns: nobody signs in by way of one.
  console_credentials: {
    id: 'text',
    user_id: 'text',
    provider: 'text',
    subject: 'text',
    password_hash: 'text',
    created_at: 'time',
    updated_at: 'time',
  },
  console_members: { user_id: 'text', account: 'integer', role: 'text', created_at: 'integer' },
  console_invitations: {
    token_sha256: 'text',
    account: 'integer',
    role: 'text',
    created_at: 'integer',
    expires_at: 'integer',
    used_at: 'integer',
  },
} as const satisfies Record<string, Record<string, ColumnKind>>;

export type PeopleTable = keyof typeof PEOPLE_TABLES;

export const PEOPLE_TABLE_NAMES = Object.keys(PEOPLE_TABLES) as readonly PeopleTable[];

export function peopleColumns(table: PeopleTable): readonly (readonly [name: string, kind: ColumnKind])[] {
  return Object.entries<ColumnKind>(PEOPLE_TABLES[table]);
}

export interface PeopleRow {
  readonly table: PeopleTable;
  /** In the order of the columns. */
  readonly values: readonly (string | number | null)[];
}

export function peopleIn(rows: readonly PeopleRow[]): number {
  return rows.filter(({ table }) => table === 'console_users').length;
}
