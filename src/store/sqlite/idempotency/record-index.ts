// Finds idempotency records by a hash of their key. Recent entries are in memory. As soon as there are enough recent
// entries, they form a sorted run, which stays in memory until it has been inserted into the B-tree. Each batch inserts
// a part of the run in hash order, so that a page of the B-tree is written only once for several entries. If many
// records have been deleted, the same batches also delete the entries of those records from the B-tree.
//
//   recent entries ──enough of them──▶ run ──inserted before the next run is formed──▶ B-tree

import type { DatabaseSync } from 'node:sqlite';
import { ManyRows } from '../file/many-rows.ts';
import { sortedPlaces } from '../file/sorted-places.ts';
import { numberOf, prepare, type Statement } from '../file/statements.ts';

/** The number of entries in a run. A run and as many recent entries can be in memory; an entry takes about 50 bytes. */
const RUN_MAX = 131_072;

/** All hashes are below this number. */
const HASHES = 2 ** 31;

/**
 * If more than this fraction of the entries in the B-tree belong to deleted records, those entries are deleted while
 * the next run is inserted.
 */
const EXPIRED_PART = 1 / 4;

/** Record numbers by hash. Two keys rarely have the same hash. */
class HashTable {
  readonly #places = new Map<number, number | number[]>();
  readonly #hashes: number[] = [];
  readonly #records: number[] = [];

  get count(): number {
    return this.#records.length;
  }

  add(hash: number, record: number): void {
    const known = this.#places.get(hash);
    const place = this.#records.length;
    this.#places.set(hash, known === undefined ? place : [known, place].flat());
    this.#hashes.push(hash);
    this.#records.push(record);
  }

  find(hash: number, found: Set<number>): void {
    const known = this.#places.get(hash);
    if (typeof known === 'number') found.add(this.#records[known] as number);
    else for (const place of known ?? []) found.add(this.#records[place] as number);
  }

  /** The places of all entries, sorted by hash. */
  sorted(): Uint32Array {
    return sortedPlaces(this.#hashes);
  }

  at(place: number): readonly [hash: number, record: number] {
    return [this.#hashes[place] as number, this.#records[place] as number];
  }
}

/** The entries of a run, and their places in the table, sorted by hash. */
interface Run {
  readonly table: HashTable;
  readonly order: Uint32Array;
}

export class RecordIndex {
  readonly #runMax: number;
  readonly #lookUp: Statement;
  readonly #insert: ManyRows;
  readonly #removeExpired: Statement;
  readonly #saveIndexed: Statement;
  #recent = new HashTable();
  #run: Run | null = null;
  #inserted = 0;
  /** The highest record number in the run. `#last` is the highest of all record numbers. */
  #runLast = 0;
  #last: number;
  #indexed: number;
  /** An estimate of the number of entries in the B-tree. `#expired` estimates how many belong to deleted records. */
  #size: number;
  #expired = 0;
  readonly #expiredThrough = { grants: 0, others: 0 };
  #isRemoving = false;
  #removedThrough = 0;

  constructor(db: DatabaseSync, runMax = RUN_MAX) {
    this.#runMax = runMax;
    this.#lookUp = prepare(db, 'SELECT record FROM idempotency_index WHERE hash IN (SELECT value FROM json_each(?))');
    this.#insert = new ManyRows(
      db,
      2,
      (rows) => `INSERT OR REPLACE INTO idempotency_index (hash, record) VALUES ${rows}`,
    );
    this.#removeExpired = prepare(
      db,
      `DELETE FROM idempotency_index WHERE hash >= ? AND hash < ?
         AND record <= CASE record % 2 WHEN 1 THEN ? ELSE ? END`,
    );
    this.#saveIndexed = prepare(db, 'UPDATE idempotency_indexed SET record = ?');
    this.#indexed = numberOf(db, 'SELECT record FROM idempotency_indexed');
    this.#last = this.#indexed;
    this.#size = estimatedSize(db);
    const rows = prepare(db, 'SELECT hash, record FROM idempotency_records WHERE record > ? ORDER BY record');
    for (const row of rows.iterate(this.#indexed)) this.add(...(row as unknown as [number, number]));
  }

  /** The B-tree contains the entries of all records up to this number. */
  get indexed(): number {
    return this.#indexed;
  }

  add(hash: number, record: number): void {
    this.#recent.add(hash, record);
    this.#last = record;
  }

  /** @returns the numbers of all records with one of these hashes */
  find(hashes: readonly number[]): Set<number> {
    const found = new Set<number>();
    for (const hash of hashes) {
      this.#recent.find(hash, found);
      this.#run?.table.find(hash, found);
    }
    for (const [record] of this.#lookUp.all(JSON.stringify(hashes))) found.add(record as number);
    return found;
  }

  /**
   * Call this once, before the first batch. Inserts all entries if there are enough for a run. Otherwise, a process that
   * restarts often would never complete a run, and would read more and more records at each start.
   */
  catchUp(): void {
    if (this.#recent.count < this.#runMax) return;
    const run = this.#beginRun();
    this.#insertUntil(run, run.order.length);
  }

  /** Call this for each batch, after the records of the batch have been added. */
  keepUp(): void {
    const progress = this.#recent.count / this.#runMax;
    if (this.#run !== null) this.#insertUntil(this.#run, this.#run.order.length * Math.min(progress, 1));
    if (progress >= 1) this.#beginRun();
  }

  /**
   * Call this after `count` expired records have been deleted.
   *
   * @param retention whether the deleted records belonged to grants or to other writes
   * @param through the highest record number among the deleted records
   */
  expire(retention: 'grants' | 'others', through: number, count: number): void {
    this.#expiredThrough[retention] = Math.max(this.#expiredThrough[retention], through);
    this.#expired += count;
  }

  #beginRun(): Run {
    const run = { table: this.#recent, order: this.#recent.sorted() };
    this.#run = run;
    this.#inserted = 0;
    this.#runLast = this.#last;
    this.#recent = new HashTable();
    this.#isRemoving = this.#expired > this.#size * EXPIRED_PART;
    this.#removedThrough = 0;
    if (this.#isRemoving) this.#size -= this.#expired;
    if (this.#isRemoving) this.#expired = 0;
    return run;
  }

  #insertUntil({ table, order }: Run, count: number): void {
    const from = this.#inserted;
    const next = () => table.at(order[this.#inserted] as number);
    for (; this.#inserted < count; this.#inserted++) this.#insert.add(...next());
    this.#insert.flush();
    this.#size += this.#inserted - from;
    const isDone = this.#inserted === order.length;
    if (this.#isRemoving) this.#remove(isDone ? HASHES : next()[0]);
    if (!isDone) return;
    this.#indexed = this.#runLast;
    this.#saveIndexed.run(this.#indexed);
    this.#run = null;
  }

  #remove(until: number): void {
    const { grants, others } = this.#expiredThrough;
    this.#removeExpired.run(this.#removedThrough, until, grants, others);
    this.#removedThrough = until;
  }
}

/** Counts at most a million entries. Hashes are evenly distributed, so these entries show how many there are in all. */
function estimatedSize(db: DatabaseSync): number {
  const counted = prepare(
    db,
    'SELECT count(*), max(hash) FROM (SELECT hash FROM idempotency_index ORDER BY hash LIMIT 1000000)',
  ).get();
  const [count, highest] = (counted ?? [0, null]) as [number, number | null];
  return count < 1_000_000 ? count : Math.round((count * HASHES) / ((highest ?? 0) + 1));
}
