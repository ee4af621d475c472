// How the outcome of an answer is stored: as JSON, or not at all where it says nothing but that all went well.

import { ACCEPTED, type Outcome } from '../ledger/command.ts';

export function storedOutcome(outcome: Outcome): string | null {
  return outcome.refused === null && outcome.cycle === null ? null : JSON.stringify(outcome);
}

export function outcomeOf(stored: string | null): Outcome {
  return stored === null ? ACCEPTED : (JSON.parse(stored) as Outcome);
}
