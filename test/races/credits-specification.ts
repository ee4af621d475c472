// The credits of one end user as a sequential state machine: the response to each call if no other call is in progress.
// Written from the API definition, independently of the rules under test. It has no time, so histories must be much
// shorter than a day.

import type { Specification } from './linearizability.ts';

export type CreditsInput =
  | { readonly call: 'add' | 'subtract' | 'start'; readonly amount: number }
  | { readonly call: 'stop' | 'balance' };

/** The part of a response that depends on the state. */
export type CreditsOutput =
  | { readonly answer: 'done' }
  | { readonly answer: 'insufficient'; readonly available: number }
  | { readonly answer: 'already active' | 'started' | 'stopped'; readonly amount: number }
  | { readonly answer: 'no cycle' }
  | { readonly answer: 'balance'; readonly cycles: string };

/** A cycle of a state, which lists its cycles oldest first. */
export interface HeldCycle {
  readonly kind: 'one-time' | 'active' | 'canceled';
  readonly amount: number;
  readonly left: number;
}

type State = readonly HeldCycle[];

export const CREDITS: Specification<State, CreditsInput, CreditsOutput> = {
  initial: [],
  nameOf,
  step(state, input, output) {
    const [after, expected] = apply(state, input);
    return output === null || JSON.stringify(output) === JSON.stringify(expected) ? after : null;
  },
};

/** Lists the cycles in the order of a balance response. */
export function nameOf(cycles: State): string {
  return cycles.map(({ kind, amount, left }) => `${kind} ${left}/${amount}`).join(', ');
}

function apply(state: State, input: CreditsInput): readonly [State, CreditsOutput] {
  const active = state.find(({ kind }) => kind === 'active');
  switch (input.call) {
    case 'balance':
      return [state, { answer: 'balance', cycles: nameOf(state) }];
    case 'add':
      return [[...state, { kind: 'one-time', amount: input.amount, left: input.amount }], { answer: 'done' }];
    case 'start':
      if (active) return [state, { answer: 'already active', amount: active.amount }];
      return [
        [...state, { kind: 'active', amount: input.amount, left: input.amount }],
        { answer: 'started', amount: input.amount },
      ];
    case 'stop': {
      const stopped = active ?? state.findLast(({ kind }) => kind === 'canceled');
      if (stopped === undefined) return [state, { answer: 'no cycle' }];
      const after = state.map((cycle): HeldCycle => (cycle === active ? { ...cycle, kind: 'canceled' } : cycle));
      return [after, { answer: 'stopped', amount: stopped.amount }];
    }
    case 'subtract':
      return subtract(state, input.amount);
  }
}

function subtract(state: State, amount: number): readonly [State, CreditsOutput] {
  const available = state.reduce((sum, { left }) => sum + left, 0);
  if (available < amount) return [state, { answer: 'insufficient', available }];
  let wanted = amount;
  const after = state.map((cycle) => {
    const drawn = Math.min(wanted, cycle.left);
    wanted -= drawn;
    return { ...cycle, left: cycle.left - drawn };
  });
  return [after, { answer: 'done' }];
}
