// Runs the store contract on SQLite: with the usual limits, with very small limits, and with the writer in its own
// thread, as in the service.

import { storeContract } from '../store-contract.ts';
import { inPlace, inThread, SMALL } from './sqlite-ledger.ts';

/** A test mostly waits for the writer thread and for the disk, so several tests can run at the same time. */
const AT_ONCE = 4;

storeContract('SQLite with the writer in the same thread', inPlace(), 'movable');
storeContract('SQLite with the writer in the same thread and small limits', inPlace(SMALL), 'movable');
storeContract('SQLite with a writer thread', inThread(), 'real', AT_ONCE);
