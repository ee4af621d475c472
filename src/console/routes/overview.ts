// The overview: three reads of the store at once, none of which looks at single end users.

import { overviewPage } from '../pages/overview.ts';
import { type ConsolePorts, type RouteTable, sendPage } from './console-ports.ts';
import { namesOf } from './people.ts';

export const OVERVIEW_DAYS = 30;
const RECENT_MAX = 12;

export function overviewRoutes(routes: RouteTable<'GET /console/overview'>, ports: ConsolePorts): void {
  routes.on('GET /console/overview', async (request, reply, viewer) => {
    const { account } = viewer;
    const [sums, recent, nameOf] = await Promise.all([
      ports.reads.overview(account, { days: OVERVIEW_DAYS }),
      ports.reads.recent(account, RECENT_MAX),
      namesOf(ports, account),
    ]);
    const view = {
      ...sums,
      recent: recent.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) })),
      apiUrl: ports.apiUrl(request),
    };
    return sendPage(reply, overviewPage(view, { viewer, notice: null }));
  });
}
