// Tests the simulated disk of the power-loss test: a disk that kept too much data could hide lost writes.

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

function outcomes(disk: Disk, survives: readonly Survives[] = SURVIVES): Set<string | undefined> {
  const random = randomFrom(1);
  const found = survives.flatMap((one) =>
    Array.from({ length: TRIES }, () => disk.afterPowerLoss(one, random).get('ledger')?.toString('latin1')),
  );
  return new Set(found);
}

test('after a power loss, the simulated disk contains all data that was synced, and may have lost all other data', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'old');
  file.synced(file.written());
  assert.deepEqual(outcomes(disk), new Set(['old']));
  write(disk, file, 0, 'new');
  const found = outcomes(disk);
  assert(found.has('old') && found.has('new'));
});

test('on the simulated disk, the creation or removal of a file is durable only after its folder is synced', () => {
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

test('on the simulated disk, bytes whose fsync failed are durable only after they are written and synced again', () => {
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

test('on the simulated disk, bytes that were written before an fsync began are durable after the fsync', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'one');
  const written = file.written();
  write(disk, file, 3, 'two');
  file.synced(written);
  assert(outcomes(disk, ['nothing']).has('one'));
});

test('on the simulated disk, some sectors or the first bytes of an unsynced write may survive a power loss', () => {
  const { disk, file } = diskWithFile();
  write(disk, file, 0, 'a'.repeat(512) + 'b'.repeat(512));
  assert(outcomes(disk, ['sectors']).has(`${'\0'.repeat(512)}${'b'.repeat(512)}`), 'only the second sector survives');
  const lengths = [...outcomes(disk, ['prefix'])].map((text) => text?.length ?? 0);
  assert(
    lengths.some((length) => length > 0 && length < 512),
    'a part of the first sector survives',
  );
});
