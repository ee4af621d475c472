// What an account shows and does, on the store and through group commit.

import type { ConsoleContext } from './console-context.ts';
import type { ConsoleRoutes } from './permissions.ts';
import { apiKeyRoutes } from './routes/api-keys.ts';
import { sendAsset } from './routes/assets.ts';
import type { ConsolePorts } from './routes/console-ports.ts';
import { endUserRoutes } from './routes/end-user.ts';
import { endUserListRoutes } from './routes/end-users.ts';
import { overviewRoutes } from './routes/overview.ts';

export function accountRoutes(routes: ConsoleRoutes, context: ConsoleContext): void {
  const { store, commit, now } = context.options;
  const ports: ConsolePorts = {
    reads: store.accountReads,
    cycles: (user) => store.cycles(user),
    commit,
    apiKeys: store.apiKeys,
    async emails(account) {
      const members = await (await context.identity()).members.list(account);
      return new Map(members.map(({ userId, email }) => [userId, email]));
    },
    apiUrl: (request) => context.publicUrlFor(request),
    now,
  };
  routes.on('GET /console/assets/:name', (request, reply) => sendAsset(request, reply));
  overviewRoutes(routes, ports);
  endUserListRoutes(routes, ports);
  endUserRoutes(routes, ports);
  apiKeyRoutes(routes, ports);
}
