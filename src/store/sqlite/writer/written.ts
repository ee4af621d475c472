// The result of a batch, and the text in which the writer thread sends the result to the main thread.

import type { Outcome } from '../../../ledger/command.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';

export interface Written {
  readonly outcomes: readonly (Outcome | null)[];
  /** For each command: the number of the end user's latest posting if that posting might be pending; otherwise 0. */
  readonly latestPostings: readonly number[];
  /** The number of generations of pending balances that have been flushed since the previous result. */
  readonly rotations: number;
}

/**
 * Converts the result of a batch to JSON for the main thread. Without JSON, V8 would clone the objects field by field,
 * which takes twice as much CPU time as converting them to JSON and back.
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

/** An outcome that contains only a transaction ID, as nearly all outcomes do, is sent as this ID. */
type Plain = TransactionId;

function shortened(outcome: Outcome | null): Outcome | Plain | null {
  if (outcome === null || outcome.refused !== null || outcome.transactionId === null) return outcome;
  const { transactionId, cycle, hold, refund, replayOf } = outcome;
  return (cycle ?? hold ?? refund ?? replayOf) === undefined ? transactionId : outcome;
}
