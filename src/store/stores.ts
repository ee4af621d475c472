// The ports of one ledger that a store opens for serving.

import type { ConsoleStore } from './console-store.ts';
import type { SummaryKeeper } from './end-user-summaries.ts';
import type { KeyStore } from './key-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { ImportGranter } from './tools/ledger-import.ts';

export interface Stores {
  readonly ledger: LedgerStore;
  readonly keys: KeyStore;
  readonly console: ConsoleStore;
  readonly summaries: SummaryKeeper;
  /** Null if other processes can grant credits themselves. */
  readonly imports: ImportGranter | null;
}
