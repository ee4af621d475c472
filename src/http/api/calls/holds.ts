// The calls that create, capture, release and list holds.

import Type, { type Static } from 'typebox';
import { HOLD_SECONDS_DEFAULT, HOLD_SECONDS_MAX } from '../../../ledger/hold.ts';
import {
  Amount,
  amountOf,
  EndUserId,
  EndUserQuery,
  HoldId,
  Note,
  strict,
  timestamp,
  transactionIdOf,
} from './fields.ts';
import { GET_NOTE, read, write } from './operation.ts';
import * as story from './story.ts';

export const HoldRequest = Type.Object(
  {
    end_user_id: EndUserId,
    amount: Amount,
    expires_in_seconds: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        minimum: 1,
        maximum: HOLD_SECONDS_MAX,
        default: HOLD_SECONDS_DEFAULT,
        description:
          'The number of seconds after which the hold lapses, unless it is captured or released first. Allow more time than the work can take. If null or absent, the hold lapses after 900 seconds. The maximum is 2592000 seconds, which is 30 days.',
      }),
    ),
    note: Note,
  },
  { ...strict, 'x-examples': story.HOLDS },
);
export const CaptureRequest = Type.Object(
  {
    end_user_id: EndUserId,
    hold_id: HoldId,
    amount: Type.Optional(
      amountOf(
        'The cost of the work. If absent, the whole hold is spent. If the cost is lower than the held amount, the remaining held credits return to the cycles that they came from. If the cost is higher, the difference is taken from the balance. If the balance does not cover the difference, nothing is captured.',
      ),
    ),
    note: Note,
  },
  { ...strict, examples: [story.CAPTURE] },
);
export const ReleaseRequest = Type.Object(
  { end_user_id: EndUserId, hold_id: HoldId, note: Note },
  { ...strict, examples: [story.RELEASE] },
);

export type HoldRequest = Static<typeof HoldRequest>;
export type CaptureRequest = Static<typeof CaptureRequest>;
export type ReleaseRequest = Static<typeof ReleaseRequest>;

const openHold = {
  hold_id: Type.String({ format: 'uuid', description: 'The ID of the hold. Send it to `/capture` or `/release`.' }),
  amount: amountOf('The credits that are held.'),
  created_at: timestamp('2026-11-20T08:00:05.123Z'),
  expires_at: timestamp('2026-11-20T08:15:05.123Z', 'When the hold lapses, unless it is captured or released first.'),
  status: Type.String({ enum: ['open'] }),
};
const Returned = amountOf('Held credits that returned to the balance.', 0);
const Expired = amountOf('Held credits that expired because their cycle or period had ended.', 0);

export const Hold = Type.Object({ end_user_id: EndUserId, ...openHold }, { $id: 'Hold' });
export const OpenHold = Type.Object(openHold, { $id: 'OpenHold' });
export const HoldList = Type.Object(
  { end_user_id: EndUserId, holds: Type.Array(Type.Ref('OpenHold#'), { description: 'Open holds, oldest first.' }) },
  { $id: 'HoldList' },
);
export const Capture = Type.Object(
  {
    end_user_id: EndUserId,
    hold_id: HoldId,
    transaction_id: transactionIdOf(
      'The ID of the capture in the list of transactions. To refund the capture, send this ID to `/refund`.',
    ),
    amount: amountOf('The number of credits that the capture spent.'),
    returned: Returned,
    expired: Expired,
    status: Type.String({ enum: ['captured'] }),
  },
  { $id: 'Capture' },
);
export const Release = Type.Object(
  {
    end_user_id: EndUserId,
    hold_id: HoldId,
    amount: amountOf('The credits that were held.'),
    returned: Returned,
    expired: Expired,
    status: Type.String({ enum: ['released'] }),
  },
  { $id: 'Release' },
);

export const hold = {
  operationId: 'hold',
  tags: ['Holds'],
  summary: 'Hold credits',
  description:
    'Sets credits aside, the oldest first. If the balance does not cover the amount, the request is refused and nothing changes. Held credits are not part of the balance, and only a capture of the hold can spend them. A hold that is neither captured nor released lapses at `expires_at`, and its credits return to the cycles that they came from.',
  body: HoldRequest,
  ...write('Hold', 'The credits are held.', story.HELD, 'InsufficientFunds', 'TooManyHolds', 'BalanceTooLarge'),
};

export const getHolds = {
  operationId: 'getHolds',
  tags: ['Holds'],
  summary: 'List open holds',
  description: `Lists the open holds, oldest first. A hold is open until it is captured or released, or until it lapses. ${GET_NOTE}`,
  querystring: EndUserQuery,
  response: read('HoldList', 'The open holds; an empty list if the end user is unknown.', {
    example: story.OPEN_HOLDS,
  }),
};

export const capture = {
  operationId: 'capture',
  tags: ['Holds'],
  summary: 'Capture a hold',
  description:
    'Spends the credits that the work costs, and closes the hold. The remaining held credits return to the cycles that they came from. If the hold and the balance together do not cover the amount, nothing changes and the hold stays open.',
  body: CaptureRequest,
  ...write('Capture', 'The hold is captured.', story.CAPTURED, 'HoldNotFound', 'InsufficientFunds'),
};

export const release = {
  operationId: 'release',
  tags: ['Holds'],
  summary: 'Release a hold',
  description: 'Returns all held credits to the cycles that they came from, and closes the hold.',
  body: ReleaseRequest,
  ...write('Release', 'The hold is released.', story.RELEASED, 'HoldNotFound'),
};
