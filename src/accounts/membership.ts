// The roles of console users, and who is allowed to sign up. A user belongs to only one account.

/**
 * Owners can do everything that members can do. Only owners can rename the account, invite and remove members, and
 * change roles. An account with members has at least one owner.
 */
export type Role = 'owner' | 'member';

export const ROLES: readonly Role[] = ['owner', 'member'];

/**
 * Who can sign up without an invitation. `open`: anyone. `closed`: no one. `first`: anyone, until an account has a
 * member. With `first`, if the ledger already has an account but no members, only a person on the machine that runs
 * Scrip can sign up.
 */
export type SignUpPolicy = 'open' | 'first' | 'closed';

export const SIGN_UP_POLICIES: readonly SignUpPolicy[] = ['open', 'first', 'closed'];

/** In characters. */
export const ACCOUNT_NAME_MAX = 200;
/** Leaves room below `ACCOUNT_NAME_MAX` for the suffix that Scrip appends if the name is already taken. */
export const SIGN_UP_NAME_MAX = 100;
