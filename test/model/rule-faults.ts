// The names of the stores in `controls.ts` that break a rule of the ledger on purpose. The other stores in that file
// mishandle crashes or concurrent requests.

import type { Control } from '../simulation/controls.ts';

export const RULE_FAULTS = [
  'lets more credits roll over than the maximum',
  'lets no credits roll over',
  'lets held credits roll over',
  'renews a cycle although another plan is scheduled',
  'keeps a scheduled plan when another one replaces it',
  'counts a month as 30 days',
  'shows monthly periods that drift after a shorter month',
] as const satisfies readonly Control[];
