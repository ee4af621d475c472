// The ports that a store opens so that a server can serve one ledger.

import type { ConsoleStore } from './console-store.ts';
import type { SummaryKeeper } from './end-user-summaries.ts';
import type { KeyStore } from './key-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { TestClock } from './test-clock.ts';
import type { ImportGranter } from './tools/ledger-import.ts';

export interface Stores {
  readonly ledger: LedgerStore;
  readonly keys: KeyStore;
  readonly console: ConsoleStore;
  readonly summaries: SummaryKeeper;
  /** Null if other processes can grant credits themselves. */
  readonly imports: ImportGranter | null;
  /** Null for a ledger without a test clock. */
  readonly testClock: TestClock | null;
}
