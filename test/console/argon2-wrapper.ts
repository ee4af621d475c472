// Wraps Node's argon2 to count the computed hashes. A test that signs in many times can make each hash a thousand times
// cheaper, unless it tests hashing itself.

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

/** The encoded hashes still contain the full parameters, so no other process can verify these hashes. */
export function makeHashesCheap(): void {
  isCheap = true;
}

export async function countHashes(work: () => Promise<unknown>): Promise<number> {
  const before = computed;
  await work();
  return computed - before;
}
