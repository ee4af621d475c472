// Names for the actors that the ledger records: `key:7`, `user:…` or `renewal`.

import { RENEWAL_ACTOR } from '../../ledger/posting.ts';
import type { ConsoleContext } from '../console-context.ts';
import type { ActorView } from '../pages/lists.ts';

/** @returns a lookup for all actors on a page */
export async function actorNames(context: ConsoleContext, account: number): Promise<(actor: string) => ActorView> {
  const { members } = await context.identity();
  const [keys, users] = await Promise.all([context.options.stores.keys.list(account), members.list(account)]);
  const names = new Map<string, ActorView>([
    [RENEWAL_ACTOR, { kind: 'renewal' }],
    ...keys.map(({ id, name, hint }) => [`key:${id}`, { kind: 'api-key', name: name || 'API key', hint }] as const),
    ...users.map(({ userId, email }) => [`user:${userId}`, { kind: 'member', email }] as const),
  ]);
  return (actor) => names.get(actor) ?? { kind: 'unknown', id: actor };
}
