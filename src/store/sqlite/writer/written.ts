// The result of a batch, and its text form for the other thread.

import type { Outcome } from '../../../ledger/command.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  /** For each command, the latest posting of its end user if that posting may be pending; else 0. */
  readonly latestPostings: readonly number[];
  /** The number of generations of pending balances that have been flushed since the last result. */
  readonly rotations: number;
}

/**
 * The result of a batch as text for the other thread. V8 copies a string as a whole, but clones objects field by field,
 * which costs twice as much as converting them to JSON and back.
 */
export function writtenText({ outcomes, latestPostings, rotations }: Written): string {
  return JSON.stringify([outcomes.map(shortened), latestPostings, rotations]);
}

export function writtenOf(text: string): Written {
  const [short, latestPostings, rotations] = JSON.parse(text) as [(Outcome | Plain | null)[], number[], number];
  const outcomes = short.map((outcome) =>
    typeof outcome === 'string' ? { refused: null, transactionId: outcome } : outcome,
  );
  return { outcomes, latestPostings, rotations };
}

/** The short form of the outcome of nearly all commands: accepted, with nothing but a transaction id. */
type Plain = TransactionId;

function shortened(outcome: Outcome | null): Outcome | Plain | null {
  if (outcome === null || outcome.refused !== null || outcome.transactionId === null) return outcome;
  const { transactionId, cycle, hold, refund, replayOf } = outcome;
  return (cycle ?? hold ?? refund ?? replayOf) === undefined ? transactionId : outcome;
}
