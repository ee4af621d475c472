// The contract of the stores, kept by SQLite: with its writer in place, where the clock can be moved, also with limits that a
// few batches reach; and with its writer in a thread, as the service runs it.

import { storeContract } from '../store-contract.ts';
import { inPlace, inThread, SMALL } from './sqlite-ledger.ts';

/** A test with a thread mostly waits for it, and for the disk. */
const AT_ONCE = 4;

storeContract('SQLite, its writer in place', inPlace(), 'movable');
storeContract('SQLite, its writer in place, with small limits', inPlace(SMALL), 'movable');
storeContract('SQLite, its writer in a thread', inThread(), 'real', AT_ONCE);
