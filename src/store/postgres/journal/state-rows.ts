// Reads the states of end users. One statement reads both cycles and holds, so that both are from the same snapshot.

import { type Cycle, inSpendingOrder } from '../../../ledger/cycle.ts';
import { type Hold, lapseOrder } from '../../../ledger/hold.ts';
import type { EndUserState } from '../../../ledger/state.ts';
import { partsOfText } from '../../state-text.ts';
import type { Part } from '../citus/placement.ts';
import { exactInteger, type Value } from '../pool/connection.ts';
import { KEY, KEY_TYPES, sameKey } from '../rows/key.ts';
import { CYCLE_COLUMNS, cycleOf, RENEWS, type ReadInteger } from '../rows/ledger-rows.ts';
import { unnest } from '../rows/row-arrays.ts';

/**
 * SQL that selects a hold as a row with the columns of a cycle. The type is null, and the `status` column contains
 * `parts`.
 */
export const HOLD_AS_CYCLE = `hold_id, NULL::integer, NULL, parts::text, NULL::bigint, NULL::bigint, NULL::bigint,
  NULL::bigint, expires_at, NULL, NULL`;

const TYPE = 2;

/**
 * SQL that converts arrays of end-user keys to rows `k`. The `place` column is the position of the key, starting at 1.
 */
export const KEYS = `${unnest(KEY_TYPES)} WITH ORDINALITY AS k (${KEY}, place)`;

/**
 * SQL for the cycles and holds of the end users in `KEYS`. The parameters are those of `KEYS`, followed by two
 * instants. Cycles that have ended by the first instant are left out, unless they renew. Holds that lapse after the
 * second instant are left out. Each row contains `place` and `ids_through`, followed by the columns of a cycle.
 */
export function statesSql(part: Part): string {
  const [floor, until] = [1, 2].map((offset) => `$${KEY_TYPES.length + offset}`);
  const cycles = `SELECT k.place, c.ids_through, ${CYCLE_COLUMNS} FROM ${KEYS} JOIN scrip.cycles c ON ${sameKey('c')}`;
  return `${cycles} AND c.ends_at > ${floor}${part.within('c')}
    UNION ALL ${cycles} AND ${RENEWS} AND c.ends_at <= ${floor}${part.within('c')}
    UNION ALL SELECT k.place, NULL::uuid, ${HOLD_AS_CYCLE} FROM ${KEYS}
      JOIN scrip.holds h ON ${sameKey('h')} AND h.expires_at <= ${until}${part.within('h')}`;
}

/**
 * SQL that makes all later batches of the end users in `KEYS` issue IDs after the ID in the parameter that follows those
 * of `KEYS`.
 */
export function moveIdsSql(part: Part): string {
  return `UPDATE scrip.end_users e SET ids_through = greatest(e.ids_through, $${KEY_TYPES.length + 1}::uuid)
    FROM ${KEYS} WHERE ${sameKey('e')}${part.within('e')}`;
}

/** Converts the rows of one end user to a state. */
export class StateRows {
  readonly #cycles: Cycle[] = [];
  readonly #holds: Hold[] = [];

  /** @param row begins with the columns of a cycle, or with `HOLD_AS_CYCLE` */
  add(row: readonly Value[], check: (cycle: Cycle) => void = () => {}, integer: ReadInteger = exactInteger): void {
    if (row[TYPE] === null) {
      this.#holds.push(holdOf(row, integer));
      return;
    }
    const cycle = cycleOf(row, integer);
    check(cycle);
    this.#cycles.push(cycle);
  }

  /** Returns the cycles in spending order, and the holds in the order in which they lapse. */
  state(): EndUserState {
    return { cycles: inSpendingOrder(this.#cycles), holds: this.#holds.sort(lapseOrder) };
  }
}

function holdOf(row: readonly Value[], integer: ReadInteger): Hold {
  const [id, , , text, , , , , expiresAt] = row;
  const parts = partsOfText(text as string).map((part) => ({ ...part, amount: integer(part.amount) }));
  return { id: id as string, expiresAt: integer(expiresAt), parts };
}
