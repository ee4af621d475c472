// A copy of a ledger contains no events. The first server that opens the copy must not derive the events of the source
// again. Copying therefore marks the events of each end user as already derived, up to the latest instant of the
// source's clock.

import type { EndUserKey } from '../../ledger/command.ts';
import type { Instant } from '../../ledger/instant.ts';
import type { Posting } from '../../ledger/posting.ts';
import { type Derivation, type DeriveEvents, type EventState, EXPIRING_DAYS_DEFAULT } from '../event-log.ts';
import { COPIED_TABLES, type CopiedRow, type TableRow } from './ledger-copy.ts';
import type { LedgerRow } from './ledger-row.ts';

export class CopiedEvents {
  readonly #derive: DeriveEvents;
  readonly #until: Instant;
  /** The `expiring_days` setting of each account, by account number. */
  readonly #expiringDays: ReadonlyMap<number, number>;
  /** The progress of event derivation for the current end user. */
  #from: EventState | null = null;

  /** @param until the latest instant of the source's clock */
  constructor(derive: DeriveEvents, tables: readonly TableRow[], until: Instant) {
    this.#derive = derive;
    this.#until = until;
    const columns = COPIED_TABLES.accounts.split(', ');
    const [account, days] = ['account', 'expiring_days'].map((name) => columns.indexOf(name));
    const accounts = tables.filter(({ table }) => table === 'accounts');
    this.#expiringDays = new Map(
      accounts.map(({ values }) => [Number(values[account as number]), Number(values[days as number])]),
    );
  }

  /** Adds the progress of event derivation to the last row of each end user. Call `follow` with all rows, in order. */
  follow(rows: readonly LedgerRow[]): readonly CopiedRow[] {
    return rows.map((row) => {
      if (row.kind === 'end-user') return { ...row, events: this.#end(row.user) };
      this.#from = this.#derived(row.user, row.postings, null).next;
      return row;
    });
  }

  #end(user: EndUserKey): Derivation {
    let derived = this.#derived(user, [], this.#until);
    // Call `derive` again, because each call processes only a limited number of instants.
    while (derived.dueAt !== null && derived.dueAt <= this.#until) {
      this.#from = derived.next;
      derived = this.#derived(user, [], this.#until);
    }
    this.#from = null;
    return derived;
  }

  /** Ignores thresholds, because they affect only events, and a copy has no events. */
  #derived(user: EndUserKey, postings: readonly Posting[], until: Instant | null): Derivation {
    const expiringDays = this.#expiringDays.get(user.account) ?? EXPIRING_DAYS_DEFAULT;
    const settings = { expiringDays, thresholds: [] };
    return this.#derive({ user, from: this.#from, postings, until, settings });
  }
}
