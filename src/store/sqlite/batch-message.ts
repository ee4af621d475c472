// A batch and its answer as one text each, for the way between the threads. V8 copies a text at once; an object for each
// command it takes apart and puts together field by field, which costs twice as much as JSON does.

import { ACCEPTED, type Command, type Outcome } from '../../ledger/command.ts';
import type { Written } from './writer.ts';

/** Stands for the outcome that nearly all have. */
const PLAIN = 0;

type OutcomeText = Outcome | null | typeof PLAIN;

export function commandsText(commands: readonly Command[]): string {
  return JSON.stringify(commands);
}

export function commandsOf(text: string): readonly Command[] {
  return JSON.parse(text) as Command[];
}

export function writtenText({ outcomes, heads, posted }: Written): string {
  const told = outcomes.map((outcome) => (outcome === ACCEPTED ? PLAIN : outcome));
  return JSON.stringify([told, heads, posted.map(({ account, endUser }) => [account, endUser])]);
}

export function writtenOf(text: string): Written {
  const [told, heads, posted] = JSON.parse(text) as [OutcomeText[], number[], [number, string][]];
  const outcomes = told.map((outcome) => (outcome === PLAIN ? ACCEPTED : outcome));
  return { outcomes, heads, posted: posted.map(([account, endUser]) => ({ account, endUser })) };
}
