// Password hashes at a thousandth of their price, for tests that sign somebody in again and again and are about something
// else. Stored hashes look as they do in use; only who computes them with less can check them.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { argon2 } = crypto;
/** The least that argon2id takes, in KiB. */
const CHEAP = { memory: 8, passes: 1 };
let isCheap = false;

/** From now on, in this process. */
export function makeHashesCheap(): void {
  if (isCheap) return;
  isCheap = true;
  crypto.argon2 = (algorithm, parameters, callback) => argon2(algorithm, { ...parameters, ...CHEAP }, callback);
  syncBuiltinESMExports();
}
