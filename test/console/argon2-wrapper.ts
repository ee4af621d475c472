// Wraps Node's argon2 for tests: computes password hashes at a thousandth of their cost, where a test signs in again and
// again and is about something else; and counts how many hashes were computed.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { argon2 } = crypto;
/** The smallest parameters that argon2id takes; memory in KiB. */
const CHEAP = { memory: 8, passes: 1 };
let isCheap = false;
let computed = 0;

crypto.argon2 = (algorithm, parameters, callback) => {
  computed += 1;
  argon2(algorithm, isCheap ? { ...parameters, ...CHEAP } : parameters, callback);
};
syncBuiltinESMExports();

/** From now on, in this process. Stored hashes still name the full parameters; only this process can verify them. */
export function makeHashesCheap(): void {
  isCheap = true;
}

export async function countHashes(work: () => Promise<unknown>): Promise<number> {
  const before = computed;
  await work();
  return computed - before;
}
