// The calls that read the balance: at one instant, and over time.

import Type, { type Static } from 'typebox';
import { INTERVALS, POINTS_MAX } from '../../../ledger/history.ts';
import { planMembers, Status } from './cycles.ts';
import {
  Amount,
  amountOf,
  CycleEnd,
  CycleStart,
  CycleType,
  EndUserId,
  INT64,
  instantField,
  strict,
  timestamp,
} from './fields.ts';
import { GET_NOTE, read } from './operation.ts';
import * as story from './story.ts';

export const BalanceQuery = Type.Object(
  {
    end_user_id: EndUserId,
    at: Type.Optional(
      // This field has no example: the example response shows the current balance.
      instantField(
        'The instant for which to compute the balance, such as 2026-12-01T00:00:00Z. The default is now. For a future instant, Scrip assumes that you make no further writes.',
      ),
    ),
  },
  strict,
);
export const BalanceHistoryQuery = Type.Object(
  {
    end_user_id: EndUserId,
    from: Type.Optional(
      instantField(
        'The instant of the first point, not before 1970. The default depends on `interval`: 24 hours before `to` for `hour`, 30 days before `to` for `day`, and 12 months before `to` for `month`, but never before 1970.',
        story.HISTORY.from,
      ),
    ),
    to: Type.Optional(
      instantField(
        'The end of the history, not before 1970. The last point is at or before this instant. The default is now.',
        story.HISTORY.to,
      ),
    ),
    interval: Type.Optional(
      Type.Unsafe<(typeof INTERVALS)[number]>({
        type: 'string',
        enum: INTERVALS,
        default: 'day',
        description: `The time between consecutive points. A request for more than ${POINTS_MAX} points is refused. Days have 24 hours; months are calendar months in UTC.`,
        examples: [story.HISTORY.interval],
      }),
    ),
  },
  strict,
);

export type BalanceQuery = Static<typeof BalanceQuery>;
export type BalanceHistoryQuery = Static<typeof BalanceHistoryQuery>;

const Held = Type.Optional(amountOf('Held credits, which only a capture can spend. Absent if no credits are held.'));

export const CycleEntry = Type.Object(
  {
    cycle_start: CycleStart,
    cycle_end: CycleEnd,
    amount: amountOf('The credits that can be spent from the cycle. Held credits are not included.', 0),
    starting_amount: Type.Integer({
      ...INT64,
      ...Amount,
      description:
        'The credits that the cycle or period started with, including credits that rolled over from the previous period.',
    }),
    status: Status,
    cycle_type: CycleType,
    ...planMembers,
  },
  { $id: 'CycleEntry' },
);
export const Balance = Type.Object(
  {
    end_user_id: EndUserId,
    active_balance_by_cycle: Type.Array(Type.Ref('CycleEntry#'), {
      description: 'Every cycle that has not ended, oldest first.',
    }),
    active_balance: amountOf('The sum of `amount` over all cycles in `active_balance_by_cycle`.', 0),
    held: Held,
  },
  { $id: 'Balance' },
);
export const BalancePoint = Type.Object(
  {
    at: timestamp('2026-11-20T00:00:00.000Z'),
    active_balance: amountOf('The credits that can be spent at the instant `at`.', 0),
    held: Held,
  },
  { $id: 'BalancePoint' },
);
export const BalanceHistory = Type.Object(
  { end_user_id: EndUserId, points: Type.Array(Type.Ref('BalancePoint#'), { description: 'Oldest first.' }) },
  { $id: 'BalanceHistory' },
);

export const getActiveBalance = {
  operationId: 'getActiveBalance',
  tags: ['Credits'],
  summary: 'Get the active balance',
  description: `Returns the credits that the end user can spend, now or at another instant, in total and by cycle. ${GET_NOTE}`,
  querystring: BalanceQuery,
  response: read('Balance', 'The balance; zero for an unknown end user.', { example: story.BALANCE }),
};

export const getBalanceHistory = {
  operationId: 'getBalanceHistory',
  tags: ['Credits'],
  summary: 'Get the balance over time',
  description: `Returns the active balance at \`from\`, and after each interval until \`to\`. Each point shows the exact balance at its instant. For points in the future, Scrip assumes that you make no further writes: the balance changes only when a cycle renews or ends, a scheduled plan starts, or a hold lapses. ${GET_NOTE}`,
  querystring: BalanceHistoryQuery,
  response: read('BalanceHistory', 'The balance at each point; zero for an unknown end user.', {
    example: story.BALANCE_HISTORY,
  }),
};
