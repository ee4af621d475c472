// Counts the hashes that argon2 computes, and can greatly reduce the cost of each hash.

import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { argon2 } = crypto;
/** The smallest parameters that argon2id accepts. */
const CHEAP = { memory: 8, passes: 1 };
let isCheap = false;
let computed = 0;

crypto.argon2 = (algorithm, parameters, callback) => {
  computed += 1;
  argon2(algorithm, isCheap ? { ...parameters, ...CHEAP } : parameters, callback);
};
syncBuiltinESMExports();

/**
 * Makes this process compute cheap hashes. The PHC string of a cheap hash still contains the expensive parameters, so
 * only a process that has called this function can verify the hash.
 */
export function makeHashesCheap(): void {
  isCheap = true;
}

export async function countHashes(work: () => Promise<unknown>): Promise<number> {
  const before = computed;
  await work();
  return computed - before;
}
