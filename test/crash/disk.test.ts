// The disk that the power-loss test replays on: it may not be kinder than a real one, or the test would find nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Disk, RecordedFile, SURVIVES, type Survives } from './disk.ts';
import { randomFrom } from './randomness.ts';

const TRIES = 200;

function diskWithFile(): { disk: Disk; file: RecordedFile } {
  const disk = new Disk();
  const file = new RecordedFile();
  disk.name('ledger', file);
  disk.folderSynced();
  return { disk, file };
}

function write(disk: Disk, file: RecordedFile, offset: number, text: string): void {
  const change = disk.write(file, offset, Buffer.from(text));
  change.isDone = true;
}

/** Everything that the file may hold after a loss of power. */
function outcomes(disk: Disk, survives: readonly Survives[] = SURVIVES): Set<string | undefined> {
  const random = randomFrom(1);
  const found = survives.flatMap((one) =>
    Array.from({ length: TRIES }, () => disk.afterPowerLoss(one, random).get('ledger')?.toString('latin1')),
  );
  return new Set(found);
}

test('what was synced is there, and what was not may be missing', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'old');
  file.synced(file.written());
  assert.deepEqual(outcomes(disk), new Set(['old']));
  write(disk, file, 0, 'new');
  const found = outcomes(disk);
  assert(found.has('old') && found.has('new'));
});

test('a name is gone until its folder is synced, and comes back until that is', () => {
  const disk = new Disk();
  const file = new RecordedFile();
  disk.name('ledger', file);
  write(disk, file, 0, 'all');
  file.synced(file.written());
  assert.deepEqual(outcomes(disk, ['nothing', 'everything']), new Set([undefined, 'all']));
  disk.folderSynced();
  disk.name('ledger', null);
  assert.deepEqual(outcomes(disk, ['nothing', 'everything']), new Set(['all', undefined]));
});

test('after an fsync that failed, a later one does not help; writing again does', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'one');
  file.failedToSync(file.written());
  write(disk, file, 3, 'two');
  file.synced(file.written());
  const found = outcomes(disk);
  assert(found.has('onetwo') && found.has('\0\0\0two'));
  write(disk, file, 0, 'one');
  file.synced(file.written());
  assert.deepEqual(outcomes(disk), new Set(['onetwo']));
});

test('an fsync is for what was written before it began', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'one');
  const written = file.written();
  write(disk, file, 3, 'two');
  file.synced(written);
  assert(outcomes(disk, ['nothing']).has('one'));
});

test('a write may get there in part, by the sector or by the byte', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'a'.repeat(512) + 'b'.repeat(512));
  assert(outcomes(disk, ['sectors']).has(`${'\0'.repeat(512)}${'b'.repeat(512)}`), 'the second sector alone');
  const lengths = [...outcomes(disk, ['prefix'])].map((text) => text?.length ?? 0);
  assert(
    lengths.some((length) => length > 0 && length < 512),
    'a part of the first sector',
  );
});
