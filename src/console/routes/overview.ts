// The overview page: the totals of a period, for all actors or for one actor.

import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import { isDueUnstored } from '../../store/ledger-store.ts';
import type { ConsoleContext } from '../console-context.ts';
import { overviewPage, PERIODS, type Period } from '../pages/overview.ts';
import type { On } from '../permissions.ts';
import { queryField, sendPage } from '../request-reply.ts';
import { accountActors } from './actor-names.ts';

const PERIOD_DEFAULT: Period = '30';
const MONTHS = 12;
const RECENT_MAX = 12;

export function overviewRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/overview', async (request, reply, viewer) => {
    const { account } = viewer;
    const { console: reads } = context.options.stores;
    const wanted = queryField(request, 'period');
    const period = PERIODS.find((known) => known === wanted) ?? PERIOD_DEFAULT;
    const { nameOf, keys, members } = await accountActors(context, account);
    const by = [...keys, ...members].find(({ actor }) => actor === queryField(request, 'by')) ?? null;
    const [totals, counts, summaries, transactions, isStoringDue] = await Promise.all([
      reads.overview(account, { days: daysOf(period, context.ledgerNow(request)), actor: by?.actor }),
      reads.endUserCounts(account),
      // The counts and the recent activity come from the summaries, as the lists of end users do.
      reads.endUsers(account, { list: { by: 'activity' }, after: null, limit: 1 }),
      reads.recent(account, RECENT_MAX),
      isDueUnstored(context.options.stores.ledger),
    ]);
    const recent = transactions.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) }));
    const apiUrl = context.publicUrlFor(request);
    const asOf = Math.min(totals.asOf, summaries.asOf);
    const view = { ...totals, asOf, counts, isStoringDue, period, by, keys, members, recent, apiUrl };
    return sendPage(reply, overviewPage(view, viewer));
  });
}

/**
 * Returns the length of a period in days. Every period includes today. `12m` covers the current month and the 11 months
 * before it.
 */
function daysOf(period: Period, now: Instant): number {
  if (period !== '12m') return Number(period);
  const today = new Date(now);
  const begin = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - MONTHS + 1);
  return Math.floor(now / DAY_MS) - begin / DAY_MS + 1;
}
