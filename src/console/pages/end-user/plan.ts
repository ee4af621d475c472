// The plan of the active recurring cycle.

import { html } from 'ghtml';
import { type Cycle, renews } from '../../../ledger/cycle.ts';
import type { Plan, ScheduledPlan } from '../../../ledger/plan.ts';
import { instantOf } from '../../../ledger/transaction-id.ts';
import { creditsText, day, momentUtc, numberText, rolloverLimitText } from '../../figures.ts';
import { creditsEveryText } from './cycle-names.ts';
import { transactionPath } from './end-user-paths.ts';

export function planSection(endUser: string, activeCycle: Cycle | null): string {
  if (activeCycle === null) return '';
  const { plan } = activeCycle;
  return html`<section class="card" id="plan">
<h2>Plan</h2>
<p><span class="strong">${creditsEveryText(plan)}.</span> ${rolloverText(plan)}</p>
<p>!${atTheEnd(endUser, activeCycle)}</p>
</section>`;
}

function rolloverText({ rolloverMax }: Plan): string {
  return rolloverMax === 0
    ? 'Unused credits expire at the end of each period.'
    : `At each renewal, ${rolloverLimitText(rolloverMax)} can roll over to the new period.`;
}

function atTheEnd(endUser: string, cycle: Cycle): string {
  const { plan, next, end } = cycle;
  if (!renews(cycle)) return 'The current period never ends.';
  if (next !== null) return html`!${changeSentence(cycle, next)} !${schedulingLink(endUser, next)}`;
  const { amount, rolloverMax } = plan;
  const credits =
    rolloverMax === 0 ? creditsText(amount) : `${numberText(amount)} plus ${rolloverLimitText(rolloverMax)}`;
  return html`The cycle renews with ${credits} on !${momentUtc(end)}.`;
}

function changeSentence({ end }: Cycle, { plan }: ScheduledPlan): string {
  const rollover =
    plan.rolloverMax === 0
      ? ''
      : ` Under the new plan, ${rolloverLimitText(plan.rolloverMax)} can roll over to each new period.`;
  return html`On !${momentUtc(end)}, the plan changes to ${creditsEveryText(plan)}. Unused credits of the current period expire when the plan changes.${rollover}`;
}

function schedulingLink(endUser: string, { id }: ScheduledPlan): string {
  return html`<a href="${transactionPath(endUser, id)}">Scheduled on !${day(instantOf(id))}</a>`;
}
