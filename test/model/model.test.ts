// Drives the real stack (SQLite file, group commit, renewal clock) and the reference model side by side through random
// histories, and compares every answer. The clock is moved by hand, backwards too, and the ledger is closed and opened
// again. Where there is a file system in memory the ledgers are there: no machine fails here, and to wait for a disk 15,000
// times was most of what this took.

import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { crashed } from '../store/outside.ts';
import { SMALL_ANSWER_LIMITS, SMALL_LIMITS } from '../store/temporary-ledger.ts';
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
/** Of the history before, whose ledger nobody needs any more: there may be little room. */
let latest: string | null = null;

modelTests('SQLite', {
  file: 'test/model/model.test.ts',
  runs: RUNS_JUDGED,
  runMsMax: 2_000,
  async newLedger(t) {
    if (latest !== null) await rm(latest, { recursive: true, force: true });
    const folder = await mkdtemp(join(place, 'scrip-model-'));
    latest = folder;
    t.after(() => rm(folder, { recursive: true, force: true }));
    let file = join(folder, 'ledger.db');
    let crashes = 0;
    return {
      open: (wall) => openSqliteStore(file, wall, { limits: SMALL_LIMITS, answerLimits: SMALL_ANSWER_LIMITS }),
      crash: () => {
        file = crashed(file, join(folder, `ledger.${++crashes}.db`));
      },
    };
  },
});
