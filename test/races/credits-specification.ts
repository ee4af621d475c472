// Computes the expected response to each call for one end user, without using the ledger's code. It does not model
// time, so a history must be much shorter than a day, and holds must last longer than the history.

import type { Specification } from './linearizability.ts';

export type CreditsInput =
  | { readonly call: 'add' | 'start'; readonly amount: number }
  | { readonly call: 'subtract'; readonly amount: number; readonly id: string }
  | { readonly call: 'hold'; readonly amount: number; readonly id: string }
  | { readonly call: 'capture'; readonly hold: string; readonly amount: number; readonly id: string }
  | { readonly call: 'release'; readonly hold: string }
  | { readonly call: 'refund'; readonly of: string; readonly amount: number }
  | { readonly call: 'stop' | 'balance' };

export type CreditsOutput =
  | { readonly answer: 'done' | 'no cycle' | 'no hold' }
  | { readonly answer: 'insufficient'; readonly available: number }
  | { readonly answer: 'already active' | 'started' | 'stopped'; readonly amount: number }
  | { readonly answer: 'closed'; readonly amount: number; readonly returned: number }
  | { readonly answer: 'too large'; readonly refundable: number }
  | { readonly answer: 'balance'; readonly text: string };

export interface HeldCycle {
  readonly kind: 'one-time' | 'active' | 'canceled';
  readonly amount: number;
  readonly left: number;
}

interface Part {
  readonly cycleIndex: number;
  readonly amount: number;
}

interface State {
  readonly cycles: readonly HeldCycle[];
  readonly holds: ReadonlyMap<string, readonly Part[]>;
  /**
   * Maps the ID of each transaction that spent credits to those credits, without the refunded ones, in the order in
   * which they were drawn. A capture can draw from a cycle twice: its held credits, and then others.
   */
  readonly spent: ReadonlyMap<string, readonly Part[]>;
}

export const CREDITS: Specification<State, CreditsInput, CreditsOutput> = {
  initial: { cycles: [], holds: new Map(), spent: new Map() },
  nameOf,
  step(state, input, output) {
    const [after, expected] = apply(state, input);
    return output === null || JSON.stringify(output) === JSON.stringify(expected) ? after : null;
  },
};

function nameOf(state: State): string {
  return `${balanceText(state.cycles, heldIn(state))}; ${partsText(state.holds)}; ${partsText(state.spent)}`;
}

function partsText(all: State['holds']): string {
  return [...all]
    .map(([id, parts]) => `${id}: ${parts.map(({ cycleIndex, amount }) => `${amount} of ${cycleIndex}`).join('+')}`)
    .sort()
    .join(', ');
}

export function balanceText(cycles: readonly HeldCycle[], held: number): string {
  return `${cycles.map(({ kind, amount, left }) => `${kind} ${left}/${amount}`).join(', ')}, ${held} held`;
}

function apply(state: State, input: CreditsInput): readonly [State, CreditsOutput] {
  const { cycles } = state;
  switch (input.call) {
    case 'balance':
      return [state, { answer: 'balance', text: balanceText(cycles, heldIn(state)) }];
    case 'add':
      return [opened(state, 'one-time', input.amount), { answer: 'done' }];
    case 'start': {
      const active = cycles.find(({ kind }) => kind === 'active');
      if (active) return [state, { answer: 'already active', amount: active.amount }];
      return [opened(state, 'active', input.amount), { answer: 'started', amount: input.amount }];
    }
    case 'stop':
      return stop(state);
    case 'subtract':
      return subtract(state, input);
    case 'hold':
      return hold(state, input);
    case 'capture':
      return capture(state, input);
    case 'release':
      return release(state, input);
    case 'refund':
      return refund(state, input);
  }
}

type Of<Call extends CreditsInput['call']> = Extract<CreditsInput, { call: Call }>;
type Step = readonly [State, CreditsOutput];

function opened(state: State, kind: HeldCycle['kind'], amount: number): State {
  return { ...state, cycles: [...state.cycles, { kind, amount, left: amount }] };
}

function stop(state: State): Step {
  const { cycles } = state;
  const active = cycles.find(({ kind }) => kind === 'active');
  const stopped = active ?? cycles.findLast(({ kind }) => kind === 'canceled');
  if (stopped === undefined) return [state, { answer: 'no cycle' }];
  const after = cycles.map((cycle): HeldCycle => (cycle === active ? { ...cycle, kind: 'canceled' } : cycle));
  return [
    { ...state, cycles: after },
    { answer: 'stopped', amount: stopped.amount },
  ];
}

function subtract(state: State, { amount, id }: Of<'subtract'>): Step {
  const available = balanceIn(state);
  if (available < amount) return [state, { answer: 'insufficient', available }];
  const drawn = draw(state, amount);
  return [{ ...taken(state, drawn), spent: new Map(state.spent).set(id, drawn) }, { answer: 'done' }];
}

function hold(state: State, { amount, id }: Of<'hold'>): Step {
  const available = balanceIn(state);
  if (available < amount) return [state, { answer: 'insufficient', available }];
  const drawn = draw(state, amount);
  return [{ ...taken(state, drawn), holds: new Map(state.holds).set(id, drawn) }, { answer: 'done' }];
}

/** Spends the oldest held credits first. If the hold is too small, the balance covers the difference. */
function capture(state: State, { hold, amount, id }: Of<'capture'>): Step {
  const parts = state.holds.get(hold);
  if (parts === undefined) return [state, { answer: 'no hold' }];
  const held = sumOf(parts);
  const available = held + balanceIn(state);
  if (available < amount) return [state, { answer: 'insufficient', available }];
  let left = amount;
  const kept: Part[] = [];
  const returned: Part[] = [];
  for (const { cycleIndex, amount: of } of parts) {
    const captured = Math.min(left, of);
    left -= captured;
    if (captured > 0) kept.push({ cycleIndex, amount: captured });
    if (of > captured) returned.push({ cycleIndex, amount: of - captured });
  }
  const further = left > 0 ? draw(state, left) : [];
  const after = taken(taken(closed(state, hold), returned, -1), further);
  return [
    { ...after, spent: new Map(state.spent).set(id, [...kept, ...further]) },
    { answer: 'closed', amount, returned: sumOf(returned) },
  ];
}

function release(state: State, { hold }: Of<'release'>): Step {
  const parts = state.holds.get(hold);
  if (parts === undefined) return [state, { answer: 'no hold' }];
  const amount = sumOf(parts);
  return [taken(closed(state, hold), parts, -1), { answer: 'closed', amount, returned: amount }];
}

function refund(state: State, { of, amount }: Of<'refund'>): Step {
  const parts = state.spent.get(of) ?? [];
  const refundable = sumOf(parts);
  if (amount > refundable) return [state, { answer: 'too large', refundable }];
  let left = amount;
  const given = parts.toReversed().map(({ cycleIndex, amount: of }) => {
    const back = Math.min(left, of);
    left -= back;
    return { cycleIndex, amount: back };
  });
  const rest = parts.map(({ cycleIndex, amount: of }, index) => {
    const back = given[parts.length - 1 - index]?.amount ?? 0;
    return { cycleIndex, amount: of - back };
  });
  return [{ ...taken(state, given, -1), spent: new Map(state.spent).set(of, rest) }, { answer: 'done' }];
}

/** @param amount at most the balance */
function draw({ cycles }: State, amount: number): Part[] {
  let wanted = amount;
  return cycles.flatMap(({ left }, cycleIndex) => {
    const drawn = Math.min(wanted, left);
    wanted -= drawn;
    return drawn > 0 ? { cycleIndex, amount: drawn } : [];
  });
}

/** @param sign 1 takes the credits out of their cycles, -1 returns them */
function taken(state: State, parts: readonly Part[], sign: 1 | -1 = 1): State {
  const cycles = state.cycles.slice();
  for (const { cycleIndex, amount } of parts) {
    const cycle = cycles[cycleIndex] as HeldCycle;
    cycles[cycleIndex] = { ...cycle, left: cycle.left - sign * amount };
  }
  return { ...state, cycles };
}

function closed(state: State, hold: string): State {
  const holds = new Map(state.holds);
  holds.delete(hold);
  return { ...state, holds };
}

function balanceIn({ cycles }: State): number {
  return cycles.reduce((sum, { left }) => sum + left, 0);
}

function heldIn({ holds }: State): number {
  return [...holds.values()].reduce((sum, parts) => sum + sumOf(parts), 0);
}

function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { amount }) => sum + amount, 0);
}
