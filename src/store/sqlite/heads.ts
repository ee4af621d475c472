// The latest posting of each end user that may not be in its holdings yet: where whoever wants to know what the end user has
// begins to read the journal. Both threads have them, the readers' and the writer's.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { prepare } from './rows.ts';
import { grown, NO_SLOT, type Slot, UserTable } from './user-table.ts';
import { uuidOfHex } from './uuid.ts';

export class Heads {
  readonly users = new UserTable();
  #postings = new Float64Array(0);

  get size(): number {
    return this.users.size;
  }

  get(user: EndUserKey): number | undefined {
    const slot = this.users.find(user);
    return slot === NO_SLOT ? undefined : this.#postings[slot];
  }

  set(user: EndUserKey, posting: number): void {
    const slot = this.users.add(user);
    if (slot >= this.#postings.length) this.#postings = grown(this.#postings, this.users.capacity);
    this.#postings[slot] = posting;
  }

  delete(user: EndUserKey): void {
    const slot = this.users.find(user);
    if (slot !== NO_SLOT) this.users.remove(slot);
  }

  *slots(): Generator<readonly [slot: Slot, posting: number]> {
    for (const slot of this.users.slots()) yield [slot, this.#postings[slot] as number];
  }
}

/** Of all end users that have entries behind what is posted for certain. */
export function headsOf(db: DatabaseSync): Heads {
  const heads = new Heads();
  const rows = prepare(
    db,
    'SELECT posting, account, hex(end_user) FROM postings WHERE posting > (SELECT posting FROM posted) ORDER BY posting',
  );
  for (const row of rows.iterate()) {
    const [posting, account, digits] = row as unknown as [number, number, string];
    heads.set({ account, endUser: uuidOfHex(digits) }, posting);
  }
  return heads;
}
