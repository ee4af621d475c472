// Makes pseudo-random numbers from a seed, with the mulberry32 generator.

export type Random = () => number;

/** The numbers are in [0, 1). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function below(count: number, random: Random): number {
  return Math.floor(random() * count);
}
