// Reads the open holds of an end user, with the actor and the note of each.

import type { EndUserKey } from '../../../ledger/command.ts';
import { heldBy } from '../../../ledger/hold.ts';
import { instantOf } from '../../../ledger/transaction-id.ts';
import { laterFirst } from '../../../store/console-store.ts';
import type { LedgerStore } from '../../../store/ledger-store.ts';
import type { LoadedEndUser } from '../../../store/loaded-end-user.ts';
import type { HoldsView } from '../../pages/end-user/holds.ts';
import type { AccountActors } from '../actor-names.ts';

/** Bounded, because each hold requires a lookup of its transaction. */
const HOLDS_SHOWN_MAX = 20;

export async function readHolds(
  ledger: Pick<LedgerStore, 'find'>,
  user: EndUserKey,
  { state, now }: LoadedEndUser,
  nameOf: AccountActors['nameOf'],
): Promise<Pick<HoldsView, 'holds' | 'openHolds'>> {
  const open = state.holds.filter(({ expiresAt }) => expiresAt > now);
  const shown = open.toSorted(laterFirst).reverse().slice(0, HOLDS_SHOWN_MAX);
  const holds = shown.map(async (hold) => {
    const { id, expiresAt } = hold;
    const [posting] = (await ledger.find(user, id))?.postings ?? [];
    const by = nameOf(posting?.actor ?? '');
    return { id, amount: heldBy(hold), createdAt: instantOf(id), expiresAt, by, note: posting?.note ?? null };
  });
  return { holds: await Promise.all(holds), openHolds: new Set(open.map(({ id }) => id)) };
}
