// One ledger, as a store opens it for serving.

import type { ConsoleStore } from './console-store.ts';
import type { KeyStore } from './key-store.ts';
import type { LedgerStore } from './ledger-store.ts';

export interface Stores {
  readonly ledger: LedgerStore;
  readonly keys: KeyStore;
  readonly console: ConsoleStore;
}
