// Runs the store contract on SQLite: with very small limits and no writer thread, and with the default limits and a
// writer thread.

import { storeContract } from '../store-contract.ts';
import { inPlace, inThread, SMALL } from './sqlite-ledger.ts';

/** Several tests run at once, because each test mostly waits for the writer thread and for the disk. */
const AT_ONCE = 4;

storeContract('SQLite with the writer in the same thread and small limits', inPlace(SMALL), { clock: 'movable' });
storeContract('SQLite with a writer thread', inThread(), { clock: 'real', concurrency: AT_ONCE, oneIn: 6 });
