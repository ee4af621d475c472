// The ports that a store opens for a server.

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
  /** Null if `scrip import` itself writes to the ledger while a server is running, as on PostgreSQL. */
  readonly imports: ImportGranter | null;
  /** Null for a ledger without a test clock. */
  readonly testClock: TestClock | null;
}
