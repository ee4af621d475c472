// Tests the linearizability checker with small histories and with random ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effort } from '../effort.ts';
import { Random } from '../load/random.ts';
import { balanceText, CREDITS, type CreditsInput, type CreditsOutput } from './credits-specification.ts';
import { checkLinearizable, type Operation, type Specification } from './linearizability.ts';

type Access = { readonly write: number } | 'read';

const VARIABLE: Specification<number, Access, number> = {
  initial: 0,
  nameOf: String,
  step(state, input, output) {
    if (input === 'read') return output === null || output === state ? state : null;
    return input.write;
  },
};

/** A null output means an unknown outcome. */
type Row = readonly [calledAt: number, returnedAt: number, input: Access, output: number | null];

const w = (write: number): Access => ({ write });

const HISTORIES: readonly (readonly [name: string, isLinearizable: boolean, rows: readonly Row[]])[] = [
  ['an empty history', true, []],
  [
    'a read that returns the value written before it',
    true,
    [
      [0, 1, w(1), 1],
      [2, 3, 'read', 1],
    ],
  ],
  [
    'a read that returns the old value after a write',
    false,
    [
      [0, 1, w(1), 1],
      [2, 3, 'read', 0],
    ],
  ],
  [
    'a read that returns the old value during a write',
    true,
    [
      [0, 5, w(1), 1],
      [2, 3, 'read', 0],
    ],
  ],
  [
    'a read that returns the new value during a write',
    true,
    [
      [0, 5, w(1), 1],
      [2, 3, 'read', 1],
    ],
  ],
  [
    'two reads that return the new and then the old value during a write',
    false,
    [
      [0, 9, w(1), 1],
      [1, 2, 'read', 1],
      [3, 4, 'read', 0],
    ],
  ],
  [
    'two reads that return the old and then the new value during a write',
    true,
    [
      [0, 9, w(1), 1],
      [1, 2, 'read', 0],
      [3, 4, 'read', 1],
    ],
  ],
  [
    'two reads that return the values of two concurrent writes, one after the other',
    true,
    [
      [0, 9, w(1), 1],
      [0, 9, w(2), 2],
      [1, 2, 'read', 2],
      [3, 4, 'read', 1],
    ],
  ],
  [
    'three reads that return the values of two concurrent writes, and then the first value again',
    false,
    [
      [0, 9, w(1), 1],
      [0, 9, w(2), 2],
      [1, 2, 'read', 2],
      [3, 4, 'read', 1],
      [5, 6, 'read', 2],
    ],
  ],
  [
    'two concurrent reads that return different values after both writes have finished',
    false,
    [
      [0, 3, w(1), 1],
      [0, 3, w(2), 2],
      [4, 5, 'read', 1],
      [4, 5, 'read', 2],
    ],
  ],
  ['a read of a value that was never written', false, [[0, 1, 'read', 7]]],
  [
    'a write with an unknown outcome that takes effect long afterwards',
    true,
    [
      [0, 1, w(1), null],
      [5, 6, 'read', 0],
      [7, 8, 'read', 1],
    ],
  ],
  [
    'a write with an unknown outcome that no read shows',
    true,
    [
      [0, 1, w(1), null],
      [5, 6, 'read', 0],
      [7, 8, 'read', 0],
    ],
  ],
  [
    'a write with an unknown outcome that a read shows before the write is called',
    false,
    [
      [0, 1, 'read', 1],
      [2, 3, w(1), null],
    ],
  ],
  [
    'a write with an unknown outcome that one read shows and the next does not',
    false,
    [
      [0, 1, w(1), null],
      [2, 3, 'read', 1],
      [4, 5, 'read', 0],
    ],
  ],
  [
    'a read that begins at the instant at which a write returns, and that returns the old value',
    true,
    [
      [0, 1, w(1), 1],
      [1, 2, 'read', 0],
    ],
  ],
];

for (const [name, isLinearizable, rows] of HISTORIES) {
  test(`the linearizability checker ${isLinearizable ? 'accepts' : 'rejects'} ${name}`, () => {
    const history = rows.map(([calledAt, returnedAt, input, output]) => ({ calledAt, returnedAt, input, output }));
    assert.equal(checkLinearizable(VARIABLE, history).isLinearizable, isLinearizable);
    assert.equal(
      checkLinearizable(VARIABLE, history.toReversed()).isLinearizable,
      isLinearizable,
      'the verdict does not depend on the order of the list',
    );
  });
}

test('the linearizability checker returns the operation whose output does not fit into any order', () => {
  const history = [
    { calledAt: 0, returnedAt: 1, input: w(1), output: 1 },
    { calledAt: 2, returnedAt: 3, input: 'read' as const, output: 0 },
  ];
  const verdict = checkLinearizable(VARIABLE, history);
  assert(!verdict.isLinearizable);
  assert.equal(verdict.stuckAt, history[1]);
});

const RANDOM_HISTORIES = effort(30, 300);

/**
 * Each call takes effect at a random time between its start and its return. However, half of the calls with an unknown
 * outcome have no effect.
 */
function soundHistory(random: Random, count: number): Operation<CreditsInput, CreditsOutput>[] {
  const calls = Array.from({ length: count }, (_, number) => {
    const at = random.next() * count;
    return {
      at,
      calledAt: at - random.next() * 2,
      returnedAt: at + random.next() * 2,
      input: someInput(random, number),
    };
  }).toSorted((a, b) => a.at - b.at);
  let state = CREDITS.initial;
  return calls.map(({ calledAt, returnedAt, input }) => {
    const [after, output] = outputOf(state, input);
    const isUnknown = random.chance(0.03);
    if (!isUnknown || random.chance(0.5)) state = after;
    return { calledAt, returnedAt, input, output: isUnknown ? null : output };
  });
}

type State = (typeof CREDITS)['initial'];

function outputOf(state: State, input: CreditsInput): readonly [State, CreditsOutput] {
  const total = state.cycles.reduce((sum, { left }) => sum + left, 0);
  const held = [...state.holds.values()].flat().reduce((sum, { amount }) => sum + amount, 0);
  const amount = 'amount' in input ? input.amount : 0;
  const ofHold = 'hold' in input ? (state.holds.get(input.hold) ?? []).reduce((sum, part) => sum + part.amount, 0) : 0;
  const ofSpent = 'of' in input ? (state.spent.get(input.of) ?? []).reduce((sum, part) => sum + part.amount, 0) : 0;
  const candidates: CreditsOutput[] = [
    { answer: 'done' },
    { answer: 'no cycle' },
    { answer: 'no hold' },
    { answer: 'insufficient', available: total },
    { answer: 'insufficient', available: total + ofHold },
    { answer: 'closed', amount, returned: Math.max(0, ofHold - amount) },
    { answer: 'closed', amount: ofHold, returned: ofHold },
    { answer: 'too large', refundable: ofSpent },
    { answer: 'balance', text: balanceText(state.cycles, held) },
    ...[...state.cycles.map((cycle) => cycle.amount), amount].flatMap((amount): CreditsOutput[] => [
      { answer: 'started', amount },
      { answer: 'already active', amount },
      { answer: 'stopped', amount },
    ]),
  ];
  for (const output of candidates) {
    const after = CREDITS.step(state, input, output);
    if (after !== null) return [after, output];
  }
  throw new Error(`the specification allows no output for ${JSON.stringify(input)}`);
}

function someInput(random: Random, number: number): CreditsInput {
  const amount = 1 + random.below(20);
  const id = `${number}`;
  const other = `${Math.max(0, number - 1 - random.below(10))}`;
  const call = random.pick([
    ...(['add', 'subtract', 'subtract', 'start', 'stop', 'balance', 'balance'] as const),
    ...(['hold', 'hold', 'capture', 'capture', 'release', 'refund', 'refund'] as const),
  ]);
  switch (call) {
    case 'stop':
    case 'balance':
      return { call };
    case 'release':
      return { call, hold: other };
    case 'capture':
      return { call, hold: other, amount, id };
    case 'refund':
      return { call, of: other, amount };
    default:
      return { call, amount, id };
  }
}

test('the linearizability checker accepts random histories of a correct ledger', () => {
  for (let seed = 0; seed < RANDOM_HISTORIES; seed++) {
    const history = soundHistory(new Random(seed), 60);
    assert(checkLinearizable(CREDITS, history).isLinearizable, `seed ${seed}`);
  }
});

test('control: the linearizability checker rejects random histories with one wrong balance', () => {
  let spoilt = 0;
  for (let seed = 0; seed < RANDOM_HISTORIES; seed++) {
    const history = soundHistory(new Random(seed), 60);
    const index = history.findLastIndex(({ output }) => output?.answer === 'insufficient');
    const { output } = history[index] ?? {};
    if (output?.answer !== 'insufficient') continue;
    // No balance in the history is this large.
    history[index] = { ...history[index], output: { ...output, available: 100_000 } } as (typeof history)[number];
    spoilt += 1;
    assert(!checkLinearizable(CREDITS, history).isLinearizable, `seed ${seed}`);
  }
  assert(spoilt > RANDOM_HISTORIES / 3, `${spoilt} histories got a wrong balance`);
});
