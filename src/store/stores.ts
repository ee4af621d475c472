// The interfaces through which a server uses a store.

import type { ConsoleStore } from './console-store.ts';
import type { EventLog } from './event-log.ts';
import type { KeyStore } from './key-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { TestClock } from './test-clock.ts';
import type { ImportGranter } from './tools/ledger-import.ts';

export interface Stores {
  readonly ledger: LedgerStore;
  readonly keys: KeyStore;
  readonly console: ConsoleStore;
  readonly events: EventLog;
  /** Null on PostgreSQL: there, `scrip import` writes to the ledger itself, even while a server is running. */
  readonly imports: ImportGranter | null;
  /** Null for a ledger without a test clock. */
  readonly testClock: TestClock | null;
}
