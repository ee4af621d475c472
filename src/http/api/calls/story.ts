// The examples of the OpenAPI document. They tell one story: if a client sends the example requests to a new
// ledger, in order and one second apart, it gets the example responses. A test checks this.

import { HOLD_SECONDS_DEFAULT } from '../../../ledger/hold.ts';
import { addMonths, DAY_MS, type Instant } from '../../../ledger/instant.ts';
import { FIRST_SEQUENCE, type TransactionId, transactionId } from '../../../ledger/transaction-id.ts';
import { EXAMPLE_USER } from './fields.ts';

const end_user_id = EXAMPLE_USER;
const BEGIN = Date.parse('2026-11-20T08:00:00.123Z');

export interface Written {
  readonly idempotencyKey: string;
  readonly transactionId: TransactionId;
  readonly response: unknown;
}

/** Several examples of one operation, by name, in the order in which they are sent. */
export type WrittenOften = Readonly<Record<string, Written & { readonly summary: string }>>;

/** @param second counted from the start of the story */
export function at(second: number): Instant {
  return BEGIN + second * 1_000;
}

export function textOf(instant: Instant): string {
  return new Date(instant).toISOString();
}

export function idAt(second: number, tail: string): TransactionId {
  return transactionId({ at: at(second), sequence: FIRST_SEQUENCE, tail });
}

export const ADDITION_ID = idAt(0, '95be776512d5');
export const SUBTRACTION_ID = idAt(1, '645ebec444fe');
export const REFUND_ID = idAt(2, 'a24f07c91b3e');
export const CYCLE_ID = idAt(3, '8128f99dccfd');
export const STOP_ID = idAt(4, '2d90b36ae817');
const CAPTURED_HOLD_ID = idAt(5, 'c5e1f2087a94');
export const RELEASED_HOLD_ID = idAt(6, '7b3d60aa52cf');
const CAPTURE_ID = idAt(8, 'e08c4db2f651');
const RELEASE_ID = idAt(9, '13fa97c60e2d');

export const ADDITION_END = textOf(at(0) + 14 * DAY_MS);
export const CYCLE_END = textOf(at(3) + 31 * DAY_MS);

export const ADD = { end_user_id, amount: 100, validity_days: 14 };
export const ADDED: Written = {
  idempotencyKey: 'payment-4711',
  transactionId: ADDITION_ID,
  response: { end_user_id, amount: 100 },
};

export const SUBTRACT = { end_user_id, amount: 30, note: 'image 4711' };
export const SUBTRACTED: Written = {
  idempotencyKey: 'image-4711',
  transactionId: SUBTRACTION_ID,
  response: { end_user_id, amount: 30 },
};

export const REFUND = { end_user_id, transaction_id: SUBTRACTION_ID, amount: 10, note: 'image 4711 was too dark' };
export const REFUNDED: Written = {
  idempotencyKey: 'complaint-4711',
  transactionId: REFUND_ID,
  response: { end_user_id, transaction_id: REFUND_ID, amount: 10, expired: 0 },
};

export const CYCLE = {
  end_user_id,
  amount: 1000,
  created_at: textOf(at(3)).slice(0, -1),
  current_cycle_start: textOf(at(3)),
  current_cycle_end: CYCLE_END,
  cycle_type: 'recurring',
  status: 'active',
} as const;

export const START_CYCLE = { end_user_id, amount: 1000, validity_days: 31 };
export const STARTED_CYCLE: Written = { idempotencyKey: 'subscription-4711', transactionId: CYCLE_ID, response: CYCLE };

export const STOP_CYCLE = { end_user_id };
export const STOPPED_CYCLE: Written = {
  idempotencyKey: 'cancellation-4711',
  transactionId: STOP_ID,
  response: { ...CYCLE, status: 'canceled' },
};

function openHold(hold_id: TransactionId, amount: number, second: number) {
  const expires_at = textOf(at(second) + HOLD_SECONDS_DEFAULT * 1_000);
  return { hold_id, amount, created_at: textOf(at(second)), expires_at, status: 'open' };
}

const CAPTURED_HOLD = openHold(CAPTURED_HOLD_ID, 50, 5);
const RELEASED_HOLD = openHold(RELEASED_HOLD_ID, 20, 6);

export const HOLDS = {
  captured: { summary: 'A hold that will be captured', value: { end_user_id, amount: 50, note: 'chat 4712' } },
  released: {
    summary: 'A hold that will be released',
    value: { end_user_id, amount: 20, expires_in_seconds: HOLD_SECONDS_DEFAULT, note: 'chat 4713' },
  },
};
export const HELD: WrittenOften = {
  captured: {
    summary: HOLDS.captured.summary,
    idempotencyKey: 'chat-4712-hold',
    transactionId: CAPTURED_HOLD_ID,
    response: { end_user_id, ...CAPTURED_HOLD },
  },
  released: {
    summary: HOLDS.released.summary,
    idempotencyKey: 'chat-4713-hold',
    transactionId: RELEASED_HOLD_ID,
    response: { end_user_id, ...RELEASED_HOLD },
  },
};
export const OPEN_HOLDS = { end_user_id, holds: [CAPTURED_HOLD, RELEASED_HOLD] };

export const CAPTURE = { end_user_id, hold_id: CAPTURED_HOLD_ID, amount: 32, note: 'chat 4712: 3200 tokens' };
export const CAPTURED: Written = {
  idempotencyKey: 'chat-4712-capture',
  transactionId: CAPTURE_ID,
  response: {
    end_user_id,
    hold_id: CAPTURED_HOLD_ID,
    transaction_id: CAPTURE_ID,
    amount: 32,
    returned: 18,
    expired: 0,
    status: 'captured',
  },
};

export const RELEASE = { end_user_id, hold_id: RELEASED_HOLD_ID };
export const RELEASED: Written = {
  idempotencyKey: 'chat-4713-release',
  transactionId: RELEASE_ID,
  response: { end_user_id, hold_id: RELEASED_HOLD_ID, amount: 20, returned: 20, expired: 0, status: 'released' },
};

/** The balance after all example requests. */
export const ACTIVE_BALANCE = 1048;
export const BALANCE = {
  end_user_id,
  active_balance_by_cycle: [
    {
      cycle_start: textOf(at(0)),
      cycle_end: ADDITION_END,
      amount: 48,
      starting_amount: 100,
      status: 'active',
      cycle_type: 'one-time',
    },
    {
      cycle_start: textOf(at(3)),
      cycle_end: CYCLE_END,
      amount: 1000,
      starting_amount: 1000,
      status: 'canceled',
      cycle_type: 'recurring',
    },
  ],
  active_balance: ACTIVE_BALANCE,
};

export const PREVIEW_CHANGE = { end_user_id, amount: 3000, validity_months: 1, on_active: 'replace' };
export const PREVIEWED_CHANGE = {
  end_user_id,
  starts_at: textOf(at(13)),
  active_balance: ACTIVE_BALANCE + 3000,
  active_balance_at_start: ACTIVE_BALANCE + 3000,
  expiring: 0,
  active_balance_by_cycle: [
    ...BALANCE.active_balance_by_cycle,
    {
      cycle_start: textOf(at(13)),
      cycle_end: textOf(addMonths(at(13), 1)),
      amount: 3000,
      starting_amount: 3000,
      status: 'active',
      cycle_type: 'recurring',
      validity_months: 1,
    },
  ],
};

export const HISTORY = { from: '2026-11-20T00:00:00Z', to: '2027-01-20T00:00:00Z', interval: 'month' } as const;
export const BALANCE_HISTORY = {
  end_user_id,
  points: [
    { at: '2026-11-20T00:00:00.000Z', active_balance: 0 },
    { at: '2026-12-20T00:00:00.000Z', active_balance: 1000 },
    { at: '2027-01-20T00:00:00.000Z', active_balance: 0 },
  ],
};

function listed(transaction_id: TransactionId, amount: number, second: number, expire_at = ADDITION_END) {
  return { transaction_id, amount, created_at: textOf(at(second)), expire_at };
}

const ADDITION_CYCLE = {
  cycle_type: 'one-time',
  starting_amount: 100,
  cycle_start: textOf(at(0)),
  cycle_end: ADDITION_END,
};
const KEY = { actor: 'key:1' };
const TRANSACTIONS = [
  listed(CAPTURE_ID, -32, 8),
  listed(CYCLE_ID, 1000, 3, CYCLE_END),
  listed(REFUND_ID, 10, 2),
  listed(SUBTRACTION_ID, -30, 1),
  listed(ADDITION_ID, 100, 0),
];

export const PAGE = { limit: 2, from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z' };
/** The example lists of transactions: a page for the parameters in `PAGE`, the whole list, and a list with details. */
export const LISTS = {
  page: {
    summary: 'With `limit`: one page, and the cursor of the next page',
    value: {
      end_user_id,
      transactions: TRANSACTIONS.slice(0, 2),
      next_cursor: 'AQGh9_g0Y0AAgAFkXr7ERP4BoZRn6AABoi7msADby7qMN3iJnA',
    },
  },
  all: {
    summary: 'Without `limit` and `cursor`: all transactions',
    value: { end_user_id, transactions: TRANSACTIONS },
  },
  details: {
    summary: 'With `details` and `note`: the details of all transactions whose note begins with a given text',
    value: {
      end_user_id,
      transactions: [
        {
          ...listed(REFUND_ID, 10, 2),
          kind: 'refund',
          note: 'image 4711 was too dark',
          ...KEY,
          reference: SUBTRACTION_ID,
          cycles: [{ cycle_id: ADDITION_ID, period: 0, amount: 10, ...ADDITION_CYCLE }],
        },
        {
          ...listed(SUBTRACTION_ID, -30, 1),
          kind: 'subtract',
          note: 'image 4711',
          ...KEY,
          refundable: 20,
          cycles: [{ cycle_id: ADDITION_ID, period: 0, amount: -30, ...ADDITION_CYCLE }],
        },
      ],
    },
  },
};

/** The examples for the test clock use a second ledger, which has a test clock and is created when the story starts. */
export const TEST_CLOCK = { now: textOf(at(0)) };
export const TEST_CLOCK_MOVES = {
  days: { summary: 'Move the clock forward by 31 days', value: { advance_days: 31 } },
  instant: { summary: 'Move the clock to an instant', value: { to: '2027-01-01T00:00:00Z' } },
};
export const TEST_CLOCK_MOVED = {
  days: { summary: TEST_CLOCK_MOVES.days.summary, value: { now: textOf(at(0) + 31 * DAY_MS) } },
  instant: { summary: TEST_CLOCK_MOVES.instant.summary, value: { now: '2027-01-01T00:00:00.000Z' } },
};
