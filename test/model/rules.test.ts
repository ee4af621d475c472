// Runs random histories on the rules, with a store in memory, and on the reference model, and compares every outcome.
// This is much faster than with a real store. A difference is a bug in the rules or in the model.

import { newMemoryLedger } from './memory-ledger.ts';
import { modelTests, RUNS_JUDGED } from './model-tests.ts';

const file = 'test/model/rules.test.ts';

modelTests('the simulated store', { file, runs: RUNS_JUDGED, runMsMax: 1_000, newLedger: newMemoryLedger() });
