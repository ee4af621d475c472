// Sample data for pages that show plans: a monthly plan with rollover, and changes of plan.

import assert from 'node:assert/strict';
import type { EndUserView } from '../../src/console/pages/end-user/end-user.ts';
import { type PlanChangeView, STARTS_NOW } from '../../src/console/pages/end-user/plan-change.ts';
import type { OnActive } from '../../src/ledger/command.ts';
import { isActiveRecurring } from '../../src/ledger/cycle.ts';
import { planOf } from '../../src/ledger/decision.ts';
import { previewOf } from '../../src/ledger/preview.ts';
import { byKey, byMember, END_USER, NOW, SampleLedger, USER, viewOf } from './sample-end-users.ts';

const MONTHLY = { validityDays: null, validityMonths: 1 };

const ledger = new SampleLedger(NOW);
ledger.run(130, { ...byKey, kind: 'start-cycle', amount: 1_000, ...MONTHLY, onActive: 'refuse' });
const later = { kind: 'start-cycle', onActive: 'at_period_end' } as const;
ledger.run(90, { ...byKey, ...later, amount: 20_000, ...MONTHLY, rolloverMax: 5_000 });
ledger.run(60, { ...byKey, kind: 'subtract', amount: 1_700 });
ledger.run(3, { ...byKey, kind: 'subtract', amount: 4_310 });
const asked = { ...later, amount: 2_500, ...MONTHLY, rolloverMax: 250, note: 'Downgrade, ticket 4733' };
ledger.run(1, { ...byMember, ...asked });

export const PLANNED_END_USER: EndUserView = { ...(await viewOf(ledger)), older: null };

async function planChange(onActive: OnActive): Promise<PlanChangeView> {
  const note = 'Upgrade, ticket 4740';
  const terms = { amount: 50_000, validityDays: null, validityMonths: 12, rolloverMax: 10_000, note };
  const command = { ...USER, ...byMember, kind: 'start-cycle', ...terms, onActive } as const;
  const { state, now } = await ledger.load(USER);
  const preview = previewOf(state, command, now);
  assert(preview.refused === null);
  const activeCycle = PLANNED_END_USER.cycles.find(isActiveRecurring) ?? null;
  const values = { amount: '50000', validity: '12', unit: 'months', on_active: onActive, note };
  const start = onActive === 'replace' ? STARTS_NOW : String(preview.startsAt);
  const confirmation = { start, isChanged: false, values, idempotencyKey: 'key-7' };
  return { endUser: END_USER, activeCycle, plan: planOf(command), note, preview, ...confirmation };
}

export const PLAN_CHANGES: Readonly<Record<string, PlanChangeView>> = {
  later: await planChange('at_period_end'),
  now: await planChange('replace'),
};
