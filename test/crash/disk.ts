// Simulates a folder on a disk that may lose power at any moment. Tracks which changes are on stable storage and which
// changes may still be lost. The simulated disk guarantees only what POSIX guarantees:
//
//   written, truncated ──fsync of the file──▶ stable
//        └──fsync fails──▶ doomed: may be lost, even after another fsync; only a new write and its fsync replace it
//   created, removed ──fsync of the folder──▶ stable
//
// As on Linux, a failed fsync does not undo any writes and marks the written pages as clean, although the written bytes
// may never become stable.

import assert from 'node:assert/strict';
import { below, type Random } from './randomness.ts';

const SECTOR_BYTES = 512;

export const SURVIVES = ['nothing', 'prefix', 'sectors', 'everything'] as const;
export type Survives = (typeof SURVIVES)[number];

interface Bytes {
  readonly offset: number;
  readonly bytes: Buffer;
}

type Change =
  | ({ readonly kind: 'write'; readonly order: number; isDone: boolean } & Bytes)
  | { readonly kind: 'truncate'; readonly order: number; isDone: boolean; readonly size: number };

type Naming = { readonly order: number; readonly name: string; readonly file: RecordedFile | null };

export type Unfinished = Change;

export class RecordedFile {
  stable: Buffer = Buffer.alloc(0);
  underWay: Change[] = [];
  doomed: Bytes[] = [];

  settle(content: Buffer): void {
    this.underWay = this.underWay.filter((change) => {
      if (change.isDone) return true;
      change.isDone = true;
      if (change.kind === 'truncate') return content.length === change.size;
      return content.subarray(change.offset, change.offset + change.bytes.length).equals(change.bytes);
    });
  }

  written(): ReadonlySet<Change> {
    return new Set(this.underWay.filter(({ isDone }) => isDone));
  }

  synced(written: ReadonlySet<Change>): void {
    for (const change of this.underWay) {
      if (!written.has(change)) continue;
      this.stable = applied(this.stable, change);
      this.#forgetDoomed(change);
    }
    this.underWay = this.underWay.filter((change) => !written.has(change));
  }

  failedToSync(written: ReadonlySet<Change>): void {
    for (const change of this.underWay) {
      if (!written.has(change)) continue;
      this.#forgetDoomed(change);
      // The file system's journal makes a new file size durable even if fsync fails.
      if (change.kind === 'truncate') this.stable = applied(this.stable, change);
      else this.doomed.push({ offset: change.offset, bytes: change.bytes });
    }
    this.underWay = this.underWay.filter((change) => !written.has(change));
  }

  #forgetDoomed(change: Change): void {
    const from = change.kind === 'truncate' ? change.size : change.offset;
    const to = change.kind === 'truncate' ? Number.POSITIVE_INFINITY : change.offset + change.bytes.length;
    this.doomed = this.doomed.flatMap(({ offset, bytes }) => {
      const before = bytes.subarray(0, Math.max(0, from - offset));
      const after = bytes.subarray(Math.min(bytes.length, Math.max(0, to - offset)));
      return [
        { offset, bytes: before },
        { offset: offset + bytes.length - after.length, bytes: after },
      ].filter((rest) => rest.bytes.length > 0);
    });
  }
}

export class Disk {
  #order = 0;
  readonly names = new Map<string, RecordedFile>();
  #stableNames = new Map<string, RecordedFile>();
  #namings: Naming[] = [];

  write(file: RecordedFile, offset: number, bytes: Buffer): Unfinished {
    const change: Change = { kind: 'write', order: this.#order++, isDone: false, offset, bytes };
    file.underWay.push(change);
    return change;
  }

  truncate(file: RecordedFile, size: number): Unfinished {
    const change: Change = { kind: 'truncate', order: this.#order++, isDone: false, size };
    file.underWay.push(change);
    return change;
  }

  name(name: string, file: RecordedFile | null): void {
    if (file === null) this.names.delete(name);
    else this.names.set(name, file);
    this.#namings.push({ order: this.#order++, name, file });
  }

  folderSynced(): void {
    this.#stableNames = new Map(this.names);
    this.#namings = [];
  }

  afterPowerLoss(survives: Survives, random: Random): Map<string, Buffer> {
    const until = survives === 'prefix' ? below(this.#order + 1 - this.#firstUnderWay(), random) : 0;
    const last = this.#firstUnderWay() + until;
    const names = new Map(this.#stableNames);
    for (const { order, name, file } of this.#namings) {
      const isThere =
        survives === 'everything' || (survives === 'prefix' ? order < last : survives === 'sectors' && random() < 0.5);
      if (!isThere) continue;
      if (file === null) names.delete(name);
      else names.set(name, file);
    }
    return new Map([...names].map(([name, file]) => [name, contentOf(file, survives, last, random)]));
  }

  #firstUnderWay(): number {
    const files = new Set([...this.names.values(), ...this.#stableNames.values()]);
    const orders = [...files].flatMap(({ underWay }) => underWay.map(({ order }) => order));
    return Math.min(this.#order, ...orders, ...this.#namings.map(({ order }) => order));
  }
}

function contentOf(
  { stable, underWay, doomed }: RecordedFile,
  survives: Survives,
  last: number,
  random: Random,
): Buffer {
  let content: Buffer = Buffer.from(stable);
  const share = survives === 'nothing' ? 0 : survives === 'everything' ? 1 : random();
  for (const bytes of doomed) content = sectorsApplied(content, bytes, share, random);
  for (const change of underWay) {
    if (survives === 'everything') content = applied(content, change);
    else if (survives === 'prefix') {
      if (change.order < last - 1) content = applied(content, change);
      else if (change.order === last - 1) content = tornApplied(content, change, random);
    } else if (survives === 'sectors') {
      if (change.kind === 'write') content = sectorsApplied(content, change, share, random);
      else if (random() < share) content = applied(content, change);
    }
  }
  return content;
}

function applied(content: Buffer, change: Change): Buffer {
  if (change.kind === 'write') return withBytes(content, change);
  return change.size <= content.length
    ? Buffer.from(content.subarray(0, change.size))
    : Buffer.concat([content, Buffer.alloc(change.size - content.length)]);
}

function tornApplied(content: Buffer, change: Change, random: Random): Buffer {
  if (change.kind === 'truncate') return random() < 0.5 ? applied(content, change) : content;
  const length = below(change.bytes.length + 1, random);
  const end = change.offset + length;
  const sectorEnd = Math.min(change.offset + change.bytes.length, Math.ceil(end / SECTOR_BYTES) * SECTOR_BYTES);
  const isGarbage = random() < 0.5;
  const torn = Buffer.from(change.bytes.subarray(0, isGarbage ? sectorEnd - change.offset : length));
  for (let at = length; at < torn.length; at++) torn[at] = below(256, random);
  return withBytes(content, { offset: change.offset, bytes: torn });
}

function sectorsApplied(content: Buffer, { offset, bytes }: Bytes, share: number, random: Random): Buffer {
  let result = content;
  const end = offset + bytes.length;
  if (end > result.length && random() < 0.5) {
    const grown = Buffer.alloc(end - result.length);
    if (random() < 0.5) for (let at = 0; at < grown.length; at++) grown[at] = below(256, random);
    result = Buffer.concat([result, grown]);
  }
  for (let from = offset; from < end; ) {
    const to = Math.min(end, (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES);
    if (random() < share)
      result = withBytes(result, { offset: from, bytes: bytes.subarray(from - offset, to - offset) });
    from = to;
  }
  return result;
}

/** May change `content`, so callers must pass a copy. */
function withBytes(content: Buffer, { offset, bytes }: Bytes): Buffer {
  assert(offset >= 0, 'the offset is not negative');
  const end = offset + bytes.length;
  const result = end <= content.length ? content : Buffer.concat([content, Buffer.alloc(end - content.length)]);
  bytes.copy(result, offset);
  return result;
}
