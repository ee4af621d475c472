// Wraps Node's argon2 for tests. Counts the computed hashes, and can compute hashes at a thousandth of their cost for
// tests that sign in many times and do not test hashing.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { argon2 } = crypto;
/** The smallest parameters that argon2id accepts. The unit of memory is KiB. */
const CHEAP = { memory: 8, passes: 1 };
let isCheap = false;
let computed = 0;

crypto.argon2 = (algorithm, parameters, callback) => {
  computed += 1;
  argon2(algorithm, isCheap ? { ...parameters, ...CHEAP } : parameters, callback);
};
syncBuiltinESMExports();

/**
 * Makes all further hashes of this process cheap. The hashes still contain the full parameters, so only this process
 * can verify them.
 */
export function makeHashesCheap(): void {
  isCheap = true;
}

export async function countHashes(work: () => Promise<unknown>): Promise<number> {
  const before = computed;
  await work();
  return computed - before;
}
