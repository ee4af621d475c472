// Slots in the order in which they came, each of them once, as numbers in a ring.

import { grown, NO_SLOT, type Slot } from './user-table.ts';

const LENGTH_FIRST = 1_024;

export class SlotQueue {
  #ring = new Int32Array(LENGTH_FIRST);
  #isIn = new Uint8Array(LENGTH_FIRST);
  #first = 0;
  #size = 0;

  /** It keeps the place that it has. */
  push(slot: Slot): void {
    if (slot >= this.#isIn.length) this.#isIn = grown(this.#isIn, Math.max(slot + 1, 2 * this.#isIn.length));
    if (this.#isIn[slot] === 1) return;
    if (this.#size === this.#ring.length) this.#grow();
    this.#ring[(this.#first + this.#size) % this.#ring.length] = slot;
    this.#isIn[slot] = 1;
    this.#size += 1;
  }

  /** @returns the one that has been there for longest; `NO_SLOT` when there is none */
  shift(): Slot {
    if (this.#size === 0) return NO_SLOT;
    const slot = this.#ring[this.#first] as number;
    this.#first = (this.#first + 1) % this.#ring.length;
    this.#size -= 1;
    this.#isIn[slot] = 0;
    return slot;
  }

  #grow(): void {
    const longer = new Int32Array(2 * this.#ring.length);
    longer.set(this.#ring.subarray(this.#first));
    longer.set(this.#ring.subarray(0, this.#first), this.#ring.length - this.#first);
    this.#ring = longer;
    this.#first = 0;
  }
}
