// Runs the store contract on SQLite twice: first without a writer thread, and with a tiny cache and tiny sorted runs;
// then with a writer thread and the default sizes.

import { storeContract } from '../store-contract.ts';
import { inPlace, inThread, SMALL } from './sqlite-ledger.ts';

/** Several tests run at once, because each test mostly waits for the writer thread and for the disk. */
const AT_ONCE = 4;

storeContract('SQLite with the writer in the same thread and a tiny cache', inPlace(SMALL), {
  clock: 'movable',
});
storeContract('SQLite with a writer thread', inThread(), { clock: 'real', concurrency: AT_ONCE, oneIn: 6 });
