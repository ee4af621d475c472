// The calls that start and stop a recurring cycle, and preview a change of plan.

import Type, { type Static } from 'typebox';
import {
  Amount,
  amountOf,
  CycleEnd,
  CycleStart,
  CycleType,
  EndUserId,
  INT64,
  Note,
  ONE_VALIDITY,
  strict,
  timestamp,
  ValidityDays,
  ValidityMonths,
} from './fields.ts';
import { preview, write } from './operation.ts';
import * as story from './story.ts';

const RolloverMax = amountOf(
  'The maximum number of unused credits that roll over to the next period at each renewal. If 0 or absent, no credits roll over.',
  0,
);

const plan = {
  end_user_id: EndUserId,
  amount: Amount,
  validity_days: Type.Optional(ValidityDays),
  validity_months: ValidityMonths,
  rollover_max: Type.Optional(RolloverMax),
  on_active: Type.Optional(
    Type.Unsafe<'replace' | 'at_period_end'>({
      type: 'string',
      enum: ['replace', 'at_period_end'],
      description:
        'What to do if a recurring cycle is already active. Without an active recurring cycle, `on_active` has no effect. `replace`: stop the active cycle and start the new cycle in one step. The credits of the stopped cycle stay usable until the end of its period. `at_period_end`: at the end of the current period, start the new cycle instead of renewing the active cycle. If `on_active` is absent and a recurring cycle is active, the request is refused with `CycleAlreadyActive`. A request with `at_period_end` is also refused with `CycleAlreadyActive` if the current period ends at the latest timestamp that Scrip supports, because the active cycle then never renews.',
    }),
  ),
};

export const StartCycleRequest = Type.Object({ ...plan, note: Note }, { ...strict, examples: [story.START_CYCLE] });
export const PreviewChangeRequest = Type.Object(
  { ...plan, note: Note },
  { ...strict, examples: [story.PREVIEW_CHANGE] },
);
export const StopCycleRequest = Type.Object(
  { end_user_id: EndUserId, note: Note },
  { ...strict, examples: [story.STOP_CYCLE] },
);

export type StartCycleRequest = Static<typeof StartCycleRequest>;
export type PreviewChangeRequest = Static<typeof PreviewChangeRequest>;
export type StopCycleRequest = Static<typeof StopCycleRequest>;

export const Status = Type.String({
  enum: ['active', 'canceled'],
  description: '`canceled` if the cycle was stopped or replaced. A canceled cycle does not renew.',
});

export const NextCycle = Type.Object(
  {
    starts_at: timestamp('2026-12-21T08:00:03.123Z', 'When the next cycle starts: at the end of the current period.'),
    amount: Amount,
    validity_days: Type.Optional(Type.Integer({ minimum: 1 })),
    validity_months: Type.Optional(Type.Integer({ minimum: 1 })),
    rollover_max: Type.Optional(RolloverMax),
  },
  { $id: 'NextCycle' },
);

export const planMembers = {
  validity_months: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Present only if the validity is in months.' }),
  ),
  rollover_max: Type.Optional(RolloverMax),
  next_cycle: Type.Optional(
    Type.Ref('NextCycle#', {
      description: 'The scheduled plan, which starts at the end of the current period. Absent if no plan is scheduled.',
    }),
  ),
};

export const Cycle = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Type.Integer({
      ...INT64,
      ...Amount,
      description:
        'The credits that the current period began with: the `amount` of the plan, plus the credits that rolled over (at most `rollover_max`).',
    }),
    created_at: Type.String({
      description:
        'When the cycle was started, in UTC. Unlike all other timestamps, this timestamp does not end in `Z`. Append `Z` to this timestamp before you parse it: most languages read a timestamp without a time zone as local time.',
      examples: ['2026-11-20T08:00:03.123'],
    }),
    current_cycle_start: CycleStart,
    current_cycle_end: CycleEnd,
    cycle_type: CycleType,
    status: Status,
    ...planMembers,
  },
  { $id: 'Cycle' },
);

export type CycleObject = Static<typeof Cycle>;

export const startCycle = {
  operationId: 'startCycle',
  tags: ['Cycles'],
  summary: 'Start a cycle',
  description:
    'Starts a recurring cycle. The cycle renews at the end of each period until it is stopped. To upgrade immediately, send `"on_active": "replace"`. To downgrade at the end of the period, send `"on_active": "at_period_end"`. If the request schedules a plan, the response is the active cycle with its `next_cycle`.',
  body: StartCycleRequest,
  documentedBody: ONE_VALIDITY,
  ...write(
    'Cycle',
    'The new cycle or, if the request scheduled a plan, the active cycle with its `next_cycle`.',
    story.STARTED_CYCLE,
    'CycleAlreadyActive',
    'BalanceTooLarge',
  ),
};

export const stopCycle = {
  operationId: 'stopCycle',
  tags: ['Cycles'],
  summary: 'Stop the recurring cycle',
  description:
    'Stops the active recurring cycle. The cycle does not renew, and its credits stay usable until the end of the current period. If you stop the cycle again, you get the same response until the period ends or another recurring cycle starts.',
  body: StopCycleRequest,
  ...write('Cycle', 'The recurring cycle, which is now canceled.', story.STOPPED_CYCLE, 'CycleNotFound'),
};

export const Preview = Type.Object(
  {
    end_user_id: EndUserId,
    starts_at: timestamp('2026-11-20T08:00:04.123Z', 'When the new cycle would start.'),
    active_balance: amountOf('The balance right after the `/start-cycle` request.', 0),
    active_balance_at_start: amountOf('The balance when the new cycle starts, if nothing is written before then.', 0),
    expiring: amountOf('Unused credits of the current period that expire when the new cycle starts.', 0),
    active_balance_by_cycle: Type.Array(Type.Ref('CycleEntry#'), {
      description:
        'The cycles as they would be right after the `/start-cycle` request, oldest first. Cycles that have ended are not included.',
    }),
  },
  { $id: 'Preview' },
);

export const previewChange = {
  operationId: 'previewChange',
  tags: ['Cycles'],
  summary: 'Preview a change of plan',
  description:
    'Takes the fields of `/start-cycle`, and returns what a `/start-cycle` request with these fields would do now. A preview changes nothing. If the `/start-cycle` request would be refused, the preview is refused with the same error.',
  body: PreviewChangeRequest,
  documentedBody: ONE_VALIDITY,
  ...preview(
    'Preview',
    'The effects of the change of plan.',
    story.PREVIEWED_CHANGE,
    'CycleAlreadyActive',
    'BalanceTooLarge',
  ),
};
