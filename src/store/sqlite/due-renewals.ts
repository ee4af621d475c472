// The end users whose cycles are due to renew, with what each of them has: found and loaded by the writer itself, a slice at
// a time, in one statement. They come in the order of the index, that is in the order of their rows where many are due at
// one instant, so that neighbours share pages.

import assert from 'node:assert/strict';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { assertCycle, type Cycle, inBurnOrder } from '../../ledger/cycle.ts';
import type { ChainHash } from '../../ledger/hash-chain.ts';
import type { Instant } from '../../ledger/instant.ts';
import { CYCLE_COLUMNS_BUT_ID, cycleOf, type Holdings, isCounted, prepare, rowsOf } from './rows.ts';
import type { Loaded } from './unposted.ts';
import { uuidOfHex } from './uuid.ts';

/**
 * What is entered between two looks at who else wants to write: a fraction of a millisecond of work. An end user who has
 * missed more periods than that is found again by the next slice.
 */
export const RENEWAL_SLICE = { usersMax: 16, periodsMax: 32 } as const;

/** What a slice has entered. */
export interface RenewalSlice {
  /** Those that have no period left to catch up with. */
  readonly endUsers: number;
  readonly periods: number;
}

interface Due {
  readonly users: EndUserKey[];
  /** Each of them. */
  readonly loaded: Loaded[];
}

/** What the writer holds of those whose rows are not all that there is. */
interface Waiting {
  load(user: EndUserKey, now: Instant, stored: Holdings): Loaded;
}

export class DueRenewals {
  readonly #load: StatementSync;

  constructor(db: DatabaseSync) {
    // From the end of the cycle on, or earlier where others are wanted: what has ended long ago is not looked at.
    this.#load = prepare(
      db,
      `SELECT hex(h.cycle_id), ${CYCLE_COLUMNS_BUT_ID.replaceAll(/\w+/g, 'h.$&')}, h.chain, h.posting_count, h.latest_posting,
         h.account, hex(h.end_user)
       FROM (
         SELECT account, end_user, ends_at FROM holdings
         WHERE type = 'recurring' AND status = 'active' AND ends_at <= ?1 ORDER BY ends_at LIMIT ?3
       ) AS due
       CROSS JOIN holdings AS h
       WHERE h.account = due.account AND h.end_user = due.end_user AND h.ends_at >= min(due.ends_at, ?2 + 1)`,
    );
  }

  /**
   * @param behind where a cycle has to end to be loaded beside the one that renews
   * @param waiting knows who has more than what is stored
   */
  load(now: Instant, behind: Instant, waiting: Waiting): Due {
    const due: Due = { users: [], loaded: [] };
    let cycles: Cycle[] = [];
    for (const row of rowsOf(this.#load, now, behind, RENEWAL_SLICE.usersMax)) {
      const latestPosting = row[11];
      if (latestPosting === null) {
        const cycle = cycleOf(row);
        assertCycle(cycle);
        if (isCounted(cycle, behind)) cycles.push(cycle);
        continue;
      }
      // An end user's own row comes behind its cycles.
      const user = { account: row[12] as number, endUser: uuidOfHex(row[13] as string) };
      assert(cycles.length > 0, 'who is due has a cycle');
      const own = {
        latestPosting: latestPosting as number,
        postingCount: row[10] as number,
        chain: row[9] as ChainHash | null,
      };
      due.users.push(user);
      due.loaded.push(waiting.load(user, behind, { cycles: inBurnOrder(cycles), ...own }));
      cycles = [];
    }
    assert(cycles.length === 0, 'who has cycles has a row of its own');
    return due;
  }
}
