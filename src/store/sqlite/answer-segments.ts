// Segments: in which slips the answers are that memory no longer knows of. A segment covers slips in sequence, and is
// divided by hash into buckets of about a page, each of which is found by its number. Once whole, it never changes.
//
//   building ──its last bucket is written──▶ whole ──merged, or its slips are forgotten──▶ doomed ──▶ deleted
//      └────────the process ends────────────────────────────────────────────────────────────▲

import assert from 'node:assert/strict';
import { endianness } from 'node:os';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { AnswerFilter, filterBytes } from './answer-filter.ts';
import { HASHES } from './answer-hash.ts';
import type { TakeEntry } from './recent-answers.ts';
import { prepare, rowsOf } from './rows.ts';

/** In `bucket` of `answer_buckets`, above the number of the bucket. */
const BUCKETS_MAX = 2 ** 20;

/** Of 8 bytes each, on average; where a bucket has more than fill its page, the rest goes on another. */
export const ENTRIES_PER_BUCKET = 225;
const ENTRY_BYTES = 8;

export interface Segment {
  readonly id: number;
  readonly level: number;
  readonly firstSlip: number;
  readonly lastSlip: number;
  readonly entries: number;
  readonly buckets: number;
  /** Null where there is no room for one, or it is not made yet. */
  filter: AnswerFilter | null;
}

type SegmentRow = readonly [
  id: number,
  state: string,
  level: number,
  firstSlip: number,
  lastSlip: number,
  entries: number,
  buckets: number,
];

export class AnswerSegments {
  readonly #filterBytesMax: number;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #insert: StatementSync;
  readonly #setState: StatementSync;
  readonly #deleteBuckets: StatementSync;
  readonly #delete: StatementSync;
  /** The oldest first. */
  readonly #whole: Segment[] = [];
  /** The numbers of those that are to be deleted, and how many buckets of each are left at most. */
  readonly #doomed: { readonly id: number; buckets: number }[] = [];
  #last = 0;
  #lastSlip = 0;

  constructor(db: DatabaseSync, filterBytesMax: number) {
    this.#filterBytesMax = filterBytesMax;
    this.#get = prepare(db, 'SELECT entries FROM answer_buckets WHERE bucket = ?');
    this.#put = prepare(db, 'INSERT INTO answer_buckets (bucket, entries) VALUES (?, ?)');
    this.#insert = prepare(
      db,
      `INSERT INTO answer_segments (segment, state, level, first_slip, last_slip, entries, buckets)
       VALUES (?, 'building', ?, ?, ?, ?, ?)`,
    );
    this.#setState = prepare(db, 'UPDATE answer_segments SET state = ? WHERE segment = ?');
    this.#deleteBuckets = prepare(db, 'DELETE FROM answer_buckets WHERE bucket >= ? AND bucket < ?');
    this.#delete = prepare(db, 'DELETE FROM answer_segments WHERE segment = ?');
    const stored = prepare(
      db,
      `SELECT segment, state, level, first_slip, last_slip, entries, buckets FROM answer_segments
       ORDER BY first_slip, segment`,
    );
    for (const row of rowsOf(stored)) this.#know(row as unknown as SegmentRow);
  }

  get whole(): readonly Segment[] {
    return this.#whole;
  }

  /** Up to which slip the answers are found here. */
  get coveredSlip(): number {
    return this.#whole.at(-1)?.lastSlip ?? 0;
  }

  /** The latest slip that any segment has known of. */
  get lastSlip(): number {
    return this.#lastSlip;
  }

  get hasDoomed(): boolean {
    return this.#doomed.length > 0;
  }

  ofLevel(level: number): Segment[] {
    return this.#whole.filter((segment) => segment.level === level);
  }

  find(hash: number, take: TakeEntry): void {
    for (const segment of this.#whole) {
      if (segment.filter !== null && !segment.filter.mayHave(hash)) continue;
      const words = this.#bucket(segment, bucketOf(hash, segment.buckets));
      // Slips stand between the hashes.
      for (let at = words.indexOf(hash); at >= 0; at = words.indexOf(hash, at + 1))
        if (at % 2 === 0) take(hash, segment.firstSlip + (words[at + 1] as number));
    }
  }

  /** All entries of a bucket, in any order. */
  takeBucket(segment: Segment, bucket: number, take: TakeEntry): void {
    const words = this.#bucket(segment, bucket);
    for (let at = 0; at < words.length; at += 2)
      take(words[at] as number, segment.firstSlip + (words[at + 1] as number));
  }

  begin(level: number, firstSlip: number, lastSlip: number, entries: number): Segment {
    const buckets = Math.min(BUCKETS_MAX, Math.max(1, Math.ceil(entries / ENTRIES_PER_BUCKET)));
    const id = ++this.#last;
    this.#insert.run(id, level, firstSlip, lastSlip, entries, buckets);
    this.#lastSlip = Math.max(this.#lastSlip, lastSlip);
    return { id, level, firstSlip, lastSlip, entries, buckets, filter: this.newFilter(entries) };
  }

  /** @param entries hash and slip of each, in turn */
  writeBucket(segment: Segment, bucket: number, entries: readonly number[]): void {
    const words = new Uint32Array(entries.length);
    for (let at = 0; at < entries.length; at += 2) {
      const hash = entries[at] as number;
      words[at] = hash;
      words[at + 1] = (entries[at + 1] as number) - segment.firstSlip;
      segment.filter?.add(hash);
    }
    this.#put.run(segment.id * BUCKETS_MAX + bucket, inFileOrder(Buffer.from(words.buffer)));
  }

  /** From now on `segment` stands for `sources`, whose slips it covers. */
  finish(segment: Segment, sources: readonly Segment[]): void {
    this.#setState.run('whole', segment.id);
    for (const source of sources) this.doom(source);
    this.#whole.push(segment);
    this.#whole.sort((a, b) => a.firstSlip - b.firstSlip);
  }

  doom(segment: Segment): void {
    this.#setState.run('doomed', segment.id);
    this.#whole.splice(this.#whole.indexOf(segment), 1);
    this.#doomed.push({ id: segment.id, buckets: segment.buckets });
  }

  /** Deletes up to so many buckets of those that are doomed. */
  deleteBuckets(bucketsMax: number): void {
    const [doomed] = this.#doomed;
    if (doomed === undefined) return;
    const first = Math.max(0, doomed.buckets - bucketsMax);
    const base = doomed.id * BUCKETS_MAX;
    this.#deleteBuckets.run(base + first, base + doomed.buckets);
    doomed.buckets = first;
    if (first > 0) return;
    this.#delete.run(doomed.id);
    this.#doomed.shift();
  }

  /** Null where all of them would take too much memory. */
  newFilter(entries: number): AnswerFilter | null {
    const bytes = this.#whole.reduce((sum, { filter }) => sum + (filter?.bytes ?? 0), 0);
    return bytes + filterBytes(entries) <= this.#filterBytesMax ? new AnswerFilter(entries) : null;
  }

  /** Hash and slip of each entry, in turn. */
  #bucket(segment: Segment, bucket: number): Uint32Array {
    const row = this.#get.get(segment.id * BUCKETS_MAX + bucket) as unknown as [Uint8Array] | undefined;
    assert(row !== undefined, 'a segment that is whole has all of its buckets');
    const { buffer, byteOffset, byteLength } = row[0];
    assert(byteLength % ENTRY_BYTES === 0 && byteOffset === 0, 'a bucket has whole entries');
    inFileOrder(Buffer.from(buffer));
    return new Uint32Array(buffer);
  }

  #know([id, state, level, firstSlip, lastSlip, entries, buckets]: SegmentRow): void {
    this.#last = Math.max(this.#last, id);
    this.#lastSlip = Math.max(this.#lastSlip, lastSlip);
    if (state === 'whole') this.#whole.push({ id, level, firstSlip, lastSlip, entries, buckets, filter: null });
    else this.#doomed.push({ id, buckets });
  }
}

/** Turns the numbers around, in place, where the machine has the highest byte first: the file has the lowest first. */
function inFileOrder(bytes: Buffer<ArrayBufferLike>): Buffer<ArrayBufferLike> {
  return endianness() === 'BE' ? bytes.swap32() : bytes;
}

/** In which of so many buckets a hash is. */
export function bucketOf(hash: number, buckets: number): number {
  return Math.floor((hash * buckets) / HASHES);
}

/** Hashes that bucket `bucket` of so many may have, both included, and maybe one more at either end. */
export function rangeOfBucket(bucket: number, buckets: number): readonly [from: number, to: number] {
  const from = Math.floor((bucket * HASHES) / buckets);
  const to = Math.ceil(((bucket + 1) * HASHES) / buckets);
  return [Math.max(0, from - 1), Math.min(HASHES - 1, to + 1)];
}
