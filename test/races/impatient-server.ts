// The control for lists-across-renewals.test.ts: the reads of this server show due renewals without waiting for running
// writes. Node.js loads this module first (`NODE_OPTIONS=--import=…`).

import { substitute } from '../load/substituted-module.ts';

substitute({
  importer: '/ledger-store.ts',
  specifier: '/ledger/next-event.ts',
  replacement: new URL('./nothing-due.ts', import.meta.url),
});
