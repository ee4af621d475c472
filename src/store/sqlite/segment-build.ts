// A segment in the making, a bucket at a time: from the answers that memory has had for long enough, or from segments that
// are put together. If the process ends before it is whole, it is begun again from the same sources.

import { type AnswerSegments, bucketOf, rangeOfBucket, type Segment } from './answer-segments.ts';
import type { RecentAnswers, TakeEntry } from './recent-answers.ts';

export class SegmentBuild {
  readonly #segments: AnswerSegments;
  readonly #made: Segment;
  readonly #sources: readonly (RecentAnswers | SegmentPart)[];
  readonly #replaced: readonly Segment[];
  #bucket = 0;

  /** @param replaced the segments that it stands for when it is done */
  private constructor(
    segments: AnswerSegments,
    made: Segment,
    sources: readonly (RecentAnswers | SegmentPart)[],
    replaced: readonly Segment[],
  ) {
    this.#segments = segments;
    this.#made = made;
    this.#sources = sources;
    this.#replaced = replaced;
  }

  static fromRecent(segments: AnswerSegments, recent: RecentAnswers, lastSlip: number): SegmentBuild {
    return new SegmentBuild(segments, segments.begin(0, recent.firstSlip, lastSlip, recent.count), [recent], []);
  }

  /** @param sources the oldest first, one behind the other */
  static fromSegments(segments: AnswerSegments, level: number, sources: readonly Segment[]): SegmentBuild {
    const entries = sources.reduce((sum, source) => sum + source.entries, 0);
    const [first, last] = [sources[0] as Segment, sources.at(-1) as Segment];
    const made = segments.begin(level, first.firstSlip, last.lastSlip, entries);
    const parts = sources.map((source) => new SegmentPart(segments, source));
    return new SegmentBuild(segments, made, parts, sources);
  }

  isSource(segment: Segment): boolean {
    return this.#replaced.includes(segment);
  }

  /**
   * Writes the next bucket.
   *
   * @param firstSlip what is known of slips before it is left out
   * @returns whether that was the last one
   */
  step(firstSlip: number): boolean {
    const { buckets } = this.#made;
    const entries: number[] = [];
    const [from, to] = rangeOfBucket(this.#bucket, buckets);
    for (const source of this.#sources)
      source.within(from, to, (hash, slip) => {
        if (slip >= firstSlip && bucketOf(hash, buckets) === this.#bucket) entries.push(hash, slip);
      });
    this.#segments.writeBucket(this.#made, this.#bucket, entries);
    this.#bucket += 1;
    if (this.#bucket < buckets) return false;
    this.#segments.finish(this.#made, this.#replaced);
    return true;
  }
}

/** A segment that is gone through in order: the bucket that was read last has more for the next one. */
class SegmentPart {
  readonly #segments: AnswerSegments;
  readonly #segment: Segment;
  readonly #entries: number[] = [];
  #bucket = -1;

  constructor(segments: AnswerSegments, segment: Segment) {
    this.#segments = segments;
    this.#segment = segment;
  }

  within(from: number, to: number, take: TakeEntry): void {
    const last = bucketOf(to, this.#segment.buckets);
    for (let bucket = bucketOf(from, this.#segment.buckets); bucket <= last; bucket++) {
      this.#read(bucket);
      for (let at = 0; at < this.#entries.length; at += 2)
        take(this.#entries[at] as number, this.#entries[at + 1] as number);
    }
  }

  #read(bucket: number): void {
    if (bucket === this.#bucket) return;
    this.#bucket = bucket;
    this.#entries.length = 0;
    this.#segments.takeBucket(this.#segment, bucket, (hash, slip) => this.#entries.push(hash, slip));
  }
}
