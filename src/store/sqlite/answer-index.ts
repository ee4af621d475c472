// Where the answer to a key is, if there is one: the latest are known in memory, the others in segments on the disk. What
// memory has had for long enough becomes a segment, and segments become larger ones, a little with each batch, so that
// they stay few; with filters in memory, a key that is new is looked for in hardly any of them.
//
//   recent ──full──▶ filed ──written, a bucket at a time──▶ segment of level 0 ──four of them──▶ one of level 1 ──▶ …

import type { DatabaseSync } from 'node:sqlite';
import type { AnswerFilter } from './answer-filter.ts';
import { AnswerSegments, ENTRIES_PER_BUCKET, type Segment } from './answer-segments.ts';
import { RecentAnswers, type TakeEntry } from './recent-answers.ts';
import { SegmentBuild } from './segment-build.ts';

export interface AnswerLimits {
  /** Answers that memory knows of, twice: 16 bytes each. A start reads as many. */
  readonly recentMax: number;
  /** So many segments of one level are put together. */
  readonly fanOut: number;
  /** Memory for filters. */
  readonly filterBytesMax: number;
}

/** 2 MiB twice, and filters for eight million answers. */
export const ANSWER_LIMITS: AnswerLimits = { recentMax: 131_072, fanOut: 4, filterBytesMax: 10 * 2 ** 20 };

/** Larger segments are not put together: with 131,072 answers in those of level 0, these hold 134 million. */
const LEVEL_MAX = 5;

/** An answer becomes a part of a segment, and of a larger one, six times at most. Twice that, and the work never piles up. */
const ENTRIES_PER_ANSWER = 12;

const DELETED_AT_ONCE = 16;

/** Buckets of which a filter is made with each batch, or once a second: half a millisecond. Eight million answers are 600 batches. */
const WARMED_AT_ONCE = 64;

export class AnswerIndex {
  readonly #limits: AnswerLimits;
  readonly #segments: AnswerSegments;
  #recent: RecentAnswers;
  /** What `recent` was, until it is a segment. */
  #filed: RecentAnswers | null = null;
  #filing: SegmentBuild | null = null;
  /** By the level that is made. */
  readonly #merges = new Map<number, SegmentBuild>();
  /** Those without a filter that may get one, and how far that has come. */
  #warming: { readonly segment: Segment; readonly filter: AnswerFilter; bucket: number } | null = null;
  #cold: Segment[];
  #firstSlip = 0;
  #credit = 0;

  constructor(db: DatabaseSync, limits: AnswerLimits) {
    this.#limits = limits;
    this.#segments = new AnswerSegments(db, limits.filterBytesMax);
    this.#recent = new RecentAnswers(limits.recentMax, this.#segments.coveredSlip + 1);
    // The last one first: the small and young ones are looked at by far the most for what they cost.
    this.#cold = this.#segments.whole.toSorted((a, b) => b.entries - a.entries);
  }

  /** Answers of slips behind it are to be added: nothing on the disk knows of them. */
  get coveredSlip(): number {
    return this.#segments.coveredSlip;
  }

  /** No slip with a larger number was ever known here. */
  get lastSlip(): number {
    return this.#segments.lastSlip;
  }

  /** Makes room for so many answers of slips that nothing on the disk knows of. */
  expect(answers: number): void {
    this.#recent = new RecentAnswers(this.#limits.recentMax, this.#recent.firstSlip, answers);
  }

  /** Whether the next slip is to begin with `file`. */
  get isFull(): boolean {
    return this.#recent.isFull;
  }

  /** Takes the slips that may have the answer to a key with this hash. */
  find(hash: number, take: TakeEntry): void {
    this.#recent.find(hash, take);
    this.#filed?.find(hash, take);
    this.#segments.find(hash, take);
  }

  add(hash: number, slip: number): void {
    this.#recent.add(hash, slip);
  }

  /** @param lastSlip nothing more comes from it, nor from those before */
  file(lastSlip: number): void {
    while (this.#filing !== null) this.#stepFiling(this.#filing);
    this.#filed = this.#recent;
    this.#filing = SegmentBuild.fromRecent(this.#segments, this.#recent, lastSlip);
    this.#recent = new RecentAnswers(this.#limits.recentMax, lastSlip + 1);
  }

  /**
   * All slips before it are forgotten. Deletes some of what is doomed, though nobody writes.
   *
   * @returns whether it has changed anything
   */
  forgetBefore(slip: number): boolean {
    this.#firstSlip = Math.max(this.#firstSlip, slip);
    const merges = [...this.#merges.values()];
    for (const segment of [...this.#segments.whole])
      if (segment.lastSlip < slip && !merges.some((merge) => merge.isSource(segment))) this.#doom(segment);
    return this.#deleteSome();
  }

  /** Does what is to be done behind so many answers, or a little of what there is. */
  work(answers: number): void {
    this.#credit += answers * ENTRIES_PER_ANSWER;
    while (this.#credit >= ENTRIES_PER_BUCKET && this.#step()) this.#credit -= ENTRIES_PER_BUCKET;
    this.#credit = Math.min(this.#credit, ENTRIES_PER_BUCKET);
  }

  /** A start leaves the filters of segments to be made later. Until then it is looked there each time. */
  warm(): void {
    for (let buckets = 0; buckets < WARMED_AT_ONCE; buckets++) {
      this.#warming ??= this.#nextCold();
      if (this.#warming === null) return;
      const { segment, filter } = this.#warming;
      this.#segments.takeBucket(segment, this.#warming.bucket++, (hash) => filter.add(hash));
      if (this.#warming.bucket < segment.buckets) continue;
      segment.filter = filter;
      this.#warming = null;
    }
  }

  /** @returns whether there was anything to do */
  #step(): boolean {
    if (this.#filing !== null) {
      this.#stepFiling(this.#filing);
      return true;
    }
    return this.#stepMerge() || this.#deleteSome();
  }

  #deleteSome(): boolean {
    if (!this.#segments.hasDoomed) return false;
    this.#segments.deleteBuckets(DELETED_AT_ONCE);
    return true;
  }

  #stepFiling(filing: SegmentBuild): void {
    if (!filing.step(this.#firstSlip)) return;
    this.#filing = null;
    this.#filed = null;
  }

  /** The smallest first: those come most often, and a large one goes on in between. */
  #stepMerge(): boolean {
    for (let level = 0; level < LEVEL_MAX; level++) {
      const merge = this.#merges.get(level + 1) ?? this.#beginMerge(level);
      if (merge === null) continue;
      if (merge.step(this.#firstSlip)) this.#merges.delete(level + 1);
      return true;
    }
    return false;
  }

  #beginMerge(level: number): SegmentBuild | null {
    const sources = this.#segments.ofLevel(level).slice(0, this.#limits.fanOut);
    if (sources.length < this.#limits.fanOut) return null;
    for (const source of sources) this.#leaveCold(source);
    const merge = SegmentBuild.fromSegments(this.#segments, level + 1, sources);
    this.#merges.set(level + 1, merge);
    return merge;
  }

  #nextCold() {
    for (let segment = this.#cold.pop(); segment !== undefined; segment = this.#cold.pop()) {
      const filter = this.#segments.newFilter(segment.entries);
      if (filter !== null) return { segment, filter, bucket: 0 };
    }
    return null;
  }

  #doom(segment: Segment): void {
    this.#leaveCold(segment);
    this.#segments.doom(segment);
  }

  #leaveCold(segment: Segment): void {
    this.#cold = this.#cold.filter((one) => one !== segment);
    if (this.#warming?.segment === segment) this.#warming = null;
  }
}
