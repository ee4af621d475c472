// Runs random histories on SQLite and the reference model, and compares every outcome. The ledger files are in memory
// if possible, because thousands of fsyncs to a disk would take most of the time.

import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WriterOptions } from '../../src/store/sqlite/writer/writer.ts';
import { effort } from '../effort.ts';
import { crashed, pluggedFile, SMALL } from '../store/sqlite/sqlite-ledger.ts';
import type { NewLedger } from '../store/test-ledger.ts';
import { modelTests, RUNS_JUDGED } from './model-tests.ts';

const IN_MEMORY = '/dev/shm';

function placeForLedgers(): string {
  try {
    accessSync(IN_MEMORY, constants.W_OK);
    return IN_MEMORY;
  } catch {
    return tmpdir();
  }
}

const place = placeForLedgers();

const newLedger =
  (options: Partial<WriterOptions>): NewLedger =>
  async (wall) => {
    const folder = mkdtempSync(join(place, 'scrip-model-'));
    const plugged = pluggedFile(join(folder, 'ledger.db'), wall, options);
    let crashes = 0;
    plugged.crash = () => {
      plugged.file = crashed(plugged.file, join(folder, `ledger.${++crashes}.db`));
    };
    plugged.remove = async () => rmSync(folder, { recursive: true, force: true });
    return plugged;
  };

const file = 'test/model/model.test.ts';
const runMsMax = 2_000;

const sqlite = { file, runMsMax, isDueFoundLate: true };
modelTests('SQLite with a tiny cache', { ...sqlite, runs: effort(12, RUNS_JUDGED), newLedger: newLedger(SMALL) });
modelTests('SQLite', { ...sqlite, runs: effort(6, 50), newLedger: newLedger({}) });
