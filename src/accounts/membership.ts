// Who may do what in an account, and who may make one. A person is a member of one account.

/** An owner also invites, removes, and changes roles. Every account has one, from its first member on. */
export type Role = 'owner' | 'member';

export const ROLES: readonly Role[] = ['owner', 'member'];

/** Whether anybody may sign up, only the first who does, or nobody without an invitation. */
export type SignUpPolicy = 'open' | 'first' | 'closed';

export const SIGN_UP_POLICIES: readonly SignUpPolicy[] = ['open', 'first', 'closed'];

/** How long the name of an account may be. One that signed up keeps room for what tells it from a namesake. */
export const ACCOUNT_NAME_MAX = 200;
export const SIGN_UP_NAME_MAX = 100;
