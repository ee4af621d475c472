// Queues the slow reads of the console. Each of these reads can take as long as reading a page of a list, and the
// console's page for an end user can need more than twenty of them.

import type { ConsoleStore } from '../../store/console-store.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { PageQueue } from './page-queue.ts';

/** In the queue, an account's console counts as a separate account, so that the console does not wait for API lists. */
const consoleOf = (account: number) => -account;

type LedgerReads = Pick<LedgerStore, 'load' | 'history' | 'statesAt' | 'find' | 'due'>;

interface ConsoleReads {
  readonly console: ConsoleStore;
  readonly ledger: LedgerReads;
}

export function queuedReads({ console, ledger }: ConsoleReads, pages: PageQueue): ConsoleReads {
  const queued = <Result>(account: number, read: () => Promise<Result>) => pages.read(consoleOf(account), null, read);
  return {
    console: {
      nameOf: (account) => console.nameOf(account),
      endUsers: (account, request) => queued(account, () => console.endUsers(account, request)),
      endUserCounts: (account) => console.endUserCounts(account),
      recent: (account, limit) => queued(account, () => console.recent(account, limit)),
      overview: (account, request) => queued(account, () => console.overview(account, request)),
    },
    ledger: {
      load: (user) => ledger.load(user),
      history: (user, request) => queued(user.account, () => ledger.history(user, request)),
      statesAt: (user, instants) => queued(user.account, () => ledger.statesAt(user, instants)),
      find: (user, id) => queued(user.account, () => ledger.find(user, id)),
      due: (limit) => ledger.due(limit),
    },
  };
}
