// Finds the display names of actors. An actor is stored as `key:<id>`, `user:<id>`, `import:<id>`, `renewal`, `change`,
// `lapse` or `operator`.

import { type Actor, CHANGE_ACTOR, LAPSE_ACTOR, RENEWAL_ACTOR } from '../../ledger/posting.ts';
import { OPERATOR } from '../../store/key-store.ts';
import type { ConsoleContext } from '../console-context.ts';
import { isolated } from '../figures.ts';
import type { Viewer } from '../layout.ts';
import type { ActorView } from '../pages/lists.ts';
import type { ActorChoice } from '../pages/overview.ts';

/** Returns the actor that Scrip records when a console user changes something. */
export function actorOf({ userId }: Viewer): Actor {
  return `user:${userId}`;
}

export interface AccountActors {
  readonly nameOf: (actor: Actor) => ActorView;
  readonly keys: readonly ActorChoice[];
  readonly members: readonly ActorChoice[];
}

export async function accountActors(context: ConsoleContext, account: number): Promise<AccountActors> {
  const { members } = await context.identity();
  const [keys, users] = await Promise.all([context.options.stores.keys.list(account), members.list(account)]);
  const views = new Map<Actor, ActorView>([
    [RENEWAL_ACTOR, { kind: 'time' }],
    [CHANGE_ACTOR, { kind: 'time' }],
    [LAPSE_ACTOR, { kind: 'time' }],
    [OPERATOR, { kind: 'operator' }],
    ...keys.map(({ id, name, hint }) => [`key:${id}`, { kind: 'api-key', name: name || 'API key', hint }] as const),
    ...users.map(({ userId, email }) => [`user:${userId}`, { kind: 'member', email }] as const),
  ]);
  const usableFirst = keys.toSorted((a, b) => Number(a.revokedAt !== null) - Number(b.revokedAt !== null));
  return {
    nameOf: (actor) => views.get(actor) ?? { kind: 'unknown', id: actor },
    keys: usableFirst.map(({ id, name, hint, revokedAt }) => ({
      actor: `key:${id}`,
      label: `${isolated(name || 'API key')} (${hint}${revokedAt === null ? '' : ', revoked'})`,
    })),
    members: users.map(({ userId, email }) => ({ actor: `user:${userId}`, label: email })),
  };
}

/** @returns a function that returns the display name of an actor */
export async function actorNames(context: ConsoleContext, account: number): Promise<AccountActors['nameOf']> {
  return (await accountActors(context, account)).nameOf;
}
