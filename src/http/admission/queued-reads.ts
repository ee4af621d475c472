// Reads of the console, in the queue of pages: one page of an end user does some twenty, each as much work as a page of a
// list.

import type { ConsoleStore } from '../../store/console-store.ts';
import type { PageQueue } from './page-queue.ts';

/** Queued apart from the API calls of the account: a page of the console would wait for twenty times all of its lists. */
const consoleOf = (account: number) => -account;

export function queuedReads(store: ConsoleStore, pages: PageQueue): ConsoleStore {
  const queued = <Result>(account: number, read: () => Promise<Result>) => pages.read(consoleOf(account), null, read);
  return {
    nameOf: (account) => store.nameOf(account),
    endUsers: (account, search) => queued(account, () => store.endUsers(account, search)),
    recent: (account, limit) => queued(account, () => store.recent(account, limit)),
    history: (user, request) => queued(user.account, () => store.history(user, request)),
    chartHistory: (user, since) => queued(user.account, () => store.chartHistory(user, since)),
    overview: (account, request) => queued(account, () => store.overview(account, request)),
  };
}
