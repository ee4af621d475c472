// Sorts natively by a numeric key: the key of an item and its place are packed into one number.

import assert from 'node:assert/strict';

/** Items that can be sorted together. */
const PLACES = 2 ** 21;
const KEYS = 2 ** 31;

/**
 * @param keys whole numbers below 2^31, fewer than 2^21 of them
 * @returns the places of the keys, in the order of the keys
 */
export function sortedPlaces(keys: readonly number[]): Uint32Array {
  assert(keys.length < PLACES, 'a sort has a bounded length');
  const packed = Float64Array.from(keys, (key, place) => (key % KEYS) * PLACES + place).sort();
  return Uint32Array.from(packed, (each) => each % PLACES);
}
