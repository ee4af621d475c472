// The calls that start and stop a recurring cycle.

import Type, { type Static } from 'typebox';
import { Amount, CycleEnd, CycleStart, CycleType, EndUserId, Note, strict, ValidityDays } from './fields.ts';
import { write } from './operation.ts';
import * as story from './story.ts';

export const StartCycleRequest = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    validity_days: Type.Optional(ValidityDays),
    on_active: Type.Optional(
      Type.Literal('replace', {
        type: 'string',
        description:
          'If a cycle is active, stop it and start the new one in one step. Without this, the request is refused with CycleAlreadyActive.',
      }),
    ),
    note: Note,
  },
  { ...strict, examples: [story.START_CYCLE] },
);
export const StopCycleRequest = Type.Object(
  { end_user_id: EndUserId, note: Note },
  { ...strict, examples: [story.STOP_CYCLE] },
);

export type StartCycleRequest = Static<typeof StartCycleRequest>;
export type StopCycleRequest = Static<typeof StopCycleRequest>;

export const Status = Type.String({
  enum: ['active', 'canceled'],
  description: '`canceled` for a stopped cycle, which is not renewed.',
});

export const Cycle = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    created_at: Type.String({
      description:
        'When the cycle was started, in UTC, but without the suffix `Z` that all other timestamps have. Append `Z` before you parse it: most languages read a timestamp without a zone as local time.',
      examples: ['2026-11-20T08:00:03.123'],
    }),
    current_cycle_start: CycleStart,
    current_cycle_end: CycleEnd,
    cycle_type: CycleType,
    status: Status,
  },
  { $id: 'Cycle' },
);

export type CycleObject = Static<typeof Cycle>;

export const startCycle = {
  operationId: 'startCycle',
  tags: ['Cycles'],
  summary: 'Start a cycle',
  description: 'Starts a recurring cycle, which renews at the end of its validity until it is stopped.',
  body: StartCycleRequest,
  ...write('Cycle', 'The new cycle.', story.STARTED_CYCLE, 'CycleAlreadyActive', 'BalanceTooLarge'),
};

export const stopCycle = {
  operationId: 'stopCycle',
  tags: ['Cycles'],
  summary: 'Stop the current cycle',
  description:
    'The credits stay usable until the end of the current period; the cycle is not renewed. Stopping it again returns the same response.',
  body: StopCycleRequest,
  ...write('Cycle', 'The current cycle, canceled.', story.STOPPED_CYCLE, 'CycleNotFound'),
};
