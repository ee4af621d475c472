// Drives the real stack (SQLite file, group commit, renewal clock) and the reference model side by side through random
// histories, and compares every answer. The clock is moved by hand, backwards too, and the ledger is closed and opened
// again.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { SMALL_LIMITS } from '../store/temporary-ledger.ts';
import { modelTests, RUNS_JUDGED } from './model-tests.ts';

modelTests('SQLite', {
  file: 'test/model/model.test.ts',
  runs: RUNS_JUDGED,
  runMsMax: 400,
  async newLedger(t) {
    const folder = await mkdtemp(join(tmpdir(), 'scrip-model-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    return (wall) => openSqliteStore(join(folder, 'ledger.db'), wall, { limits: SMALL_LIMITS });
  },
});
