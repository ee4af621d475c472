// Replays the recorded system calls of a process on a simulated `Disk`. The replay fails on calls that it does not
// support, so that no change is silently left out.

import assert from 'node:assert/strict';
import { basename, dirname } from 'node:path';
import { Disk, RecordedFile, type Unfinished } from './disk.ts';
import type { Call, TracePart } from './strace.ts';

/** SQLite recreates the shared-memory file after a power loss, so the replay ignores changes to this file. */
const SHARED_MEMORY = /-shm$/;

/** Matches an argument such as `17</ledger/scrip.db>`. */
const DESCRIPTOR = /^(-?\d+)(?:<([^>]*)>)?/;

export class RecordedDisk {
  readonly disk = new Disk();
  readonly #folder: string;
  readonly #isFsyncIgnored: boolean;
  readonly #open = new Map<number, RecordedFile>();
  readonly #changes = new Map<string, { file: RecordedFile; change: Unfinished }>();
  readonly #syncs = new Map<string, { file: RecordedFile; written: ReadonlySet<Unfinished> }>();
  fsyncs = 0;
  failedFsyncs = 0;
  failedWrites = 0;
  writes = 0;

  constructor(folder: string, { isFsyncIgnored = false } = {}) {
    this.#folder = folder;
    this.#isFsyncIgnored = isFsyncIgnored;
  }

  follow(part: TracePart): boolean {
    const { call } = part;
    const concerned = pathsOf(call).filter((path) => path.startsWith(this.#folder) && !SHARED_MEMORY.test(path));
    if (concerned.length === 0) {
      if (call.name === 'close' && part.part === 'end') this.#open.delete(descriptorOf(call));
      return false;
    }
    if (part.part === 'begin') this.#begin(part.thread, call);
    else this.#end(part.thread, call, part.result, part.from);
    return true;
  }

  /** @param found the files that the process left, by name; they show which unfinished calls took effect */
  processEnded(found: ReadonlyMap<string, Buffer>): void {
    for (const [name, file] of this.disk.names) {
      const content = found.get(name) ?? assert.fail(`${name} is in the replay, but not in the folder`);
      file.settle(content);
    }
    const replayed = this.disk.afterPowerLoss('everything', () => 0);
    assert.deepEqual(
      [...replayed.keys()].sort(),
      [...found.keys()].sort(),
      'the replay has the same files as the folder',
    );
    for (const [name, content] of replayed)
      assert(found.get(name)?.equals(content), `the replay of ${name} has the same content as the file`);
    this.#open.clear();
    this.#changes.clear();
    this.#syncs.clear();
  }

  #begin(thread: string, call: Call): void {
    switch (call.name) {
      case 'pwrite64': {
        const file = this.#fileOf(call);
        const change = this.disk.write(file, lastNumberOf(call), call.strings[0] as Buffer);
        this.#changes.set(thread, { file, change });
        break;
      }
      case 'ftruncate': {
        const file = this.#fileOf(call);
        this.#changes.set(thread, { file, change: this.disk.truncate(file, lastNumberOf(call)) });
        break;
      }
      case 'fsync':
      case 'fdatasync': {
        if (pathsOf(call)[0] === this.#folder) break;
        const file = this.#fileOf(call);
        this.#syncs.set(thread, { file, written: file.written() });
        break;
      }
    }
  }

  #end(thread: string, call: Call, result: number, line: string): void {
    switch (call.name) {
      case 'pwrite64':
      case 'ftruncate':
        this.writes += 1;
        this.#changed(thread, result);
        return;
      case 'fsync':
      case 'fdatasync':
        this.#synced(thread, result);
        return;
      case 'openat':
        if (result >= 0) this.#opened(call, result);
        return;
      case 'close':
        this.#open.delete(descriptorOf(call));
        return;
      case 'unlink':
        if (result === 0) this.disk.name(basename(String(call.strings[0])), null);
        return;
      default:
        throw new Error(`the replay does not support this call: ${line.slice(0, 200)}`);
    }
  }

  #changed(thread: string, result: number): void {
    const { file, change } = this.#changes.get(thread) ?? assert.fail(`thread ${thread} has begun no change`);
    this.#changes.delete(thread);
    if (result < 0) {
      this.failedWrites += 1;
      file.underWay = file.underWay.filter((other) => other !== change);
      return;
    }
    assert(change.kind === 'truncate' || result === change.bytes.length, 'the replay does not support partial writes');
    change.isDone = true;
  }

  #synced(thread: string, result: number): void {
    if (result === 0) this.fsyncs += 1;
    else this.failedFsyncs += 1;
    const sync = this.#syncs.get(thread);
    this.#syncs.delete(thread);
    if (this.#isFsyncIgnored && this.fsyncs > FSYNCS_HEEDED) return;
    if (sync === undefined) {
      if (result === 0) this.disk.folderSynced();
    } else if (result === 0) sync.file.synced(sync.written);
    else sync.file.failedToSync(sync.written);
  }

  #opened(call: Call, descriptor: number): void {
    const path = String(call.strings[0]);
    if (dirname(path) !== this.#folder) return;
    const name = basename(path);
    assert(!call.args.includes('O_TRUNC'), 'the replay does not support truncating a file by opening it');
    let file = this.disk.names.get(name);
    if (file === undefined) {
      assert(call.args.includes('O_CREAT'), `${name} does not exist`);
      file = new RecordedFile();
      this.disk.name(name, file);
    }
    this.#open.set(descriptor, file);
  }

  #fileOf(call: Call): RecordedFile {
    return this.#open.get(descriptorOf(call)) ?? assert.fail(`${call.args} is not open`);
  }
}

/** The simulated disk starts to ignore fsync only after this many fsyncs, so that the ledger can be created. */
const FSYNCS_HEEDED = 12;

function pathsOf({ args, strings, name }: Call): string[] {
  const descriptors = [...args.matchAll(/\b\d+<([^>]*)>/g)].map(([, path]) => path as string);
  const named = /^(open|creat|rename|link|symlink|unlink|truncate)/.test(name) ? strings.map(String) : [];
  return [...descriptors.filter((path) => !args.startsWith('AT_FDCWD') || path !== descriptors[0]), ...named];
}

function descriptorOf({ args }: Call): number {
  return Number(DESCRIPTOR.exec(args)?.[1]);
}

function lastNumberOf({ args }: Call): number {
  const last = args.split(', ').at(-1);
  assert(last !== undefined && /^\d+$/.test(last), `${args} ends in a number`);
  return Number(last);
}
