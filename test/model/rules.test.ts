// Runs random histories on the reference model and on the ledger's rules, and compares every outcome. The rules use a
// fast in-memory store.

import { effort } from '../effort.ts';
import { BROKEN_STORES } from '../simulation/controls.ts';
import { newMemoryLedger } from './memory-ledger.ts';
import { modelControl, modelTests, RUNS_JUDGED } from './model-tests.ts';
import { RULE_FAULTS } from './rule-faults.ts';

const file = 'test/model/rules.test.ts';

const runs = effort(75, RUNS_JUDGED);
modelTests('the simulated store', { file, runs, runMsMax: 1_000, newLedger: newMemoryLedger() });

for (const fault of RULE_FAULTS) modelControl(fault, { newLedger: newMemoryLedger(BROKEN_STORES[fault]) });
