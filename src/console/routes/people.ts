// Who did something, from what the ledger keeps of it: `key:7`, `user:…` or `renewal`. Names are looked up for all that
// a page shows at once.

import { RENEWAL_ACTOR } from '../../ledger/posting.ts';
import type { DoneBy } from '../pages/activity.ts';
import type { ConsolePorts } from './console-ports.ts';

export async function namesOf(
  { apiKeys, emails }: Pick<ConsolePorts, 'apiKeys' | 'emails'>,
  account: number,
): Promise<(actor: string) => DoneBy> {
  const [keys, members] = await Promise.all([apiKeys.list(account), emails(account)]);
  const keyOf = new Map(keys.map(({ id, name, hint }) => [`key:${id}`, { name: name || 'API key', hint }]));
  return (actor) => {
    const key = keyOf.get(actor);
    if (key !== undefined) return { kind: 'key', ...key };
    if (actor === RENEWAL_ACTOR) return { kind: 'renewal' };
    const email = actor.startsWith('user:') ? members.get(actor.slice('user:'.length)) : undefined;
    return email === undefined ? { kind: 'other', actor } : { kind: 'member', email };
  };
}
