// Runs random histories on the reference model and on the ledger rules, which use a fast in-memory store, and compares
// every outcome.

import { BROKEN_STORES } from '../simulation/controls.ts';
import { newMemoryLedger } from './memory-ledger.ts';
import { modelControl, modelTests, RUNS_JUDGED } from './model-tests.ts';

const file = 'test/model/rules.test.ts';

modelTests('the simulated store', { file, runs: RUNS_JUDGED, runMsMax: 1_000, newLedger: newMemoryLedger() });

const FAULTS = [
  'lets more credits roll over than the maximum',
  'lets no credits roll over',
  'lets held credits roll over',
  'renews a cycle although another plan is scheduled',
  'keeps a scheduled plan when another one replaces it',
  'counts a month as 30 days',
  'shows monthly periods that drift after a shorter month',
] as const;

for (const fault of FAULTS) modelControl(fault, { newLedger: newMemoryLedger(BROKEN_STORES[fault]) });
