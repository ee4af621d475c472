// Sorts keys with the native sort of typed arrays. Each key and its index are packed into one number.

import assert from 'node:assert/strict';

/** Indexes are below `PLACES`, and keys below `KEYS`. */
const PLACES = 2 ** 21;
const KEYS = 2 ** 31;

/**
 * @param keys fewer than 2^21 whole numbers, each below 2^31
 * @returns the indexes of the keys, sorted by key
 */
export function sortedPlaces(keys: readonly number[]): Uint32Array {
  assert(keys.length < PLACES, 'fewer than 2^21 keys are sorted at a time');
  const packed = Float64Array.from(keys, (key, place) => (key % KEYS) * PLACES + place).sort();
  return Uint32Array.from(packed, (each) => each % PLACES);
}
