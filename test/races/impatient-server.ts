// The control for lists-across-renewals.test.ts: makes the reads of a server show due renewals without waiting for
// running writes. This module is loaded before all others (`NODE_OPTIONS=--import=…`).

import { substitute } from '../load/substituted-module.ts';

substitute({
  importer: '/ledger-store.ts',
  specifier: '/ledger/next-event.ts',
  replacement: new URL('./nothing-due.ts', import.meta.url),
});
