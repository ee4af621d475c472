// Queues the reads of the console as pages: the console page of an end user makes about twenty reads, each as much work
// as a page of a list.

import type { ConsoleStore } from '../../store/console-store.ts';
import type { PageQueue } from './page-queue.ts';

/**
 * Queues them as a separate account. Otherwise each of the twenty reads would wait behind the queued lists of the
 * account.
 */
const consoleOf = (account: number) => -account;

export function queuedReads(store: ConsoleStore, pages: PageQueue): ConsoleStore {
  const queued = <Result>(account: number, read: () => Promise<Result>) => pages.read(consoleOf(account), null, read);
  return {
    nameOf: (account) => store.nameOf(account),
    endUsers: (account, request) => queued(account, () => store.endUsers(account, request)),
    endUserCounts: (account) => store.endUserCounts(account),
    recent: (account, limit) => queued(account, () => store.recent(account, limit)),
    history: (user, request) => queued(user.account, () => store.history(user, request)),
    chartHistory: (user, since) => queued(user.account, () => store.chartHistory(user, since)),
    overview: (account, request) => queued(account, () => store.overview(account, request)),
  };
}
