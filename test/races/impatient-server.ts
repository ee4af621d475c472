// A server whose reads do not wait for writes before they show due renewals: the control for the list test. Loaded
// before all other modules (`NODE_OPTIONS=--import=…`), it makes the store find no renewal due, so that there is
// nothing to wait for.

import { substitute } from '../load/substituted-module.ts';

substitute({
  importer: '/ledger-store.ts',
  specifier: '/ledger/next-event.ts',
  replacement: new URL('./nothing-due.ts', import.meta.url),
});
