// The overview. Its three reads run in parallel; none of them looks at single end users.

import type { ConsoleContext } from '../console-context.ts';
import { overviewPage } from '../pages/overview.ts';
import type { On } from '../permissions.ts';
import { sendPage } from '../request-reply.ts';
import { actorNames } from './actor-names.ts';

const OVERVIEW_DAYS = 30;
const RECENT_MAX = 12;

export function overviewRoutes(on: On, context: ConsoleContext): void {
  on('GET /console/overview', async (request, reply, viewer) => {
    const { account } = viewer;
    const reads = context.options.stores.console;
    const [totals, transactions, nameOf] = await Promise.all([
      reads.overview(account, { days: OVERVIEW_DAYS }),
      reads.recent(account, RECENT_MAX),
      actorNames(context, account),
    ]);
    const recent = transactions.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) }));
    const apiUrl = context.publicUrlFor(request);
    return sendPage(reply, overviewPage({ ...totals, recent, apiUrl }, viewer));
  });
}
