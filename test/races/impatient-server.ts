// A server whose reads wait for no write, for the control of lists across renewals: loaded before everything else
// (`NODE_OPTIONS=--import=…`). The store waits before it shows a renewal that is due; here it finds nothing due.

import { substitute } from '../load/substituted-module.ts';

substitute({
  importer: '/ledger-store.ts',
  specifier: '/ledger/next-event.ts',
  replacement: new URL('./nothing-due.ts', import.meta.url),
});
