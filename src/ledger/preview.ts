// Previews the start of a cycle, without storing anything.

import type { Amount } from './amount.ts';
import { applyAll } from './apply.ts';
import { activeBalance, atItsEnd, cyclesAt } from './balance.ts';
import type { Accepted, Refusal, StartCycle } from './command.ts';
import { type Cycle, spendable } from './cycle.ts';
import { startCycle } from './decide-cycles.ts';
import type { Instant } from './instant.ts';
import type { EndUserState } from './state.ts';
import { SEQUENCE_COUNT, transactionId } from './transaction-id.ts';

export interface Preview {
  readonly refused: null;
  /** The start of the new cycle. */
  readonly startsAt: Instant;
  /** The cycles right after the request. */
  readonly cycles: readonly Cycle[];
  readonly balance: Amount;
  /** The balance when the new cycle starts, if nothing is written before then. */
  readonly balanceAtStart: Amount;
  /** Unused credits of the current period that expire when the new cycle starts. */
  readonly expiring: Amount;
}

/**
 * Ignores `command.seen`: the ledger checks it when the command is submitted.
 *
 * @param state the stored state, which need not be settled at `now`
 */
export function previewOf(state: EndUserState, command: StartCycle, now: Instant): Preview | Refusal {
  const settled = { cycles: cyclesAt(state, now), holds: state.holds.filter(({ expiresAt }) => expiresAt > now) };
  // A preview uses at most two transaction IDs, which sort after all other IDs of this instant.
  let sequence = SEQUENCE_COUNT - 2;
  const nextId = () => transactionId({ at: now, sequence: sequence++, tail: '0'.repeat(12) });
  const { outcome, postings } = startCycle(settled, { ...command, seen: null }, { now, nextId });
  if (outcome.refused !== null) return outcome;
  const { cycle } = outcome as Accepted & { readonly cycle: Cycle };
  const after = applyAll(settled, postings);
  const startsAt = cycle.next === null ? cycle.start : cycle.end;
  return {
    refused: null,
    startsAt,
    cycles: after.cycles,
    balance: activeBalance(after.cycles, now),
    balanceAtStart: activeBalance(cyclesAt(after, startsAt), startsAt),
    expiring: cycle.next === null ? 0 : spendable(atItsEnd(cycle, after.holds)),
  };
}
