// The reads of an account, which its console asks for, a page in its turn among those of long lists. The page of one end
// user asks for some twenty, and each is as much work as a page of a list.

import type { AccountReads } from '../store/account-reads.ts';
import type { PageTurns } from './page-turns.ts';

/** Beside the lists of an account, its console has a line of its own: behind 500 lists a page of it would take 20 times 500 turns. */
const consoleOf = (account: number) => -account;

export function readsInTurn(reads: AccountReads, turns: PageTurns): AccountReads {
  // Null is for readers that have gone, and nobody knows of those of the console.
  const inTurn = <Result>(account: number, read: () => Promise<Result>) =>
    turns.take({ account: consoleOf(account), isDisconnected: false }, read) as Promise<Result>;
  return {
    nameOf: (account) => reads.nameOf(account),
    endUsers: (account, search) => inTurn(account, () => reads.endUsers(account, search)),
    recent: (account, limit) => inTurn(account, () => reads.recent(account, limit)),
    history: (user, request) => inTurn(user.account, () => reads.history(user, request)),
    cyclesSince: (user, since) => inTurn(user.account, () => reads.cyclesSince(user, since)),
    overview: (account, request) => inTurn(account, () => reads.overview(account, request)),
  };
}
