// Counts how often a value fell between which bounds, as a few additions into plain numbers: cheap enough for every
// request. Whoever wants to see it, sums it up.

export class Histogram {
  /** Upper bounds, each inclusive, rising. */
  readonly bounds: readonly number[];
  /** How many fell into each, not summed; the last one is for what lies beyond all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) index += 1;
    counts[index] = (counts[index] as number) + 1;
    this.sum += value;
  }
}
