// How hashes spread their bits: multiplied by 2^32 divided by the golden ratio, so that each bit counts in all above it
// (Knuth, The Art of Computer Programming, volume 3, section 6.4).

const MIX = 0x9e37_79b1;

export function spread(bits: number): number {
  return Math.imul(bits, MIX);
}
