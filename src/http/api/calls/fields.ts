// The fields that several calls have in common.

import Type, { type Static } from 'typebox';
import { AMOUNT_MAX } from '../../../ledger/amount.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../../ledger/instant.ts';
import { VALIDITY_MONTHS_MAX } from '../../../ledger/plan.ts';
import { NOTE_LENGTH_MAX } from '../../../ledger/posting.ts';

/** The end user of all examples; see `story.ts`. */
export const EXAMPLE_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

export const EndUserId = Type.String({
  format: 'uuid',
  description: 'The ID of the end user: a UUID that you choose.',
  examples: [EXAMPLE_USER],
});

/** Without this format, some generated clients read amounts as 32-bit integers. */
export const INT64 = { format: 'int64' } as const;

export const Amount = Type.Integer({
  ...INT64,
  minimum: 1,
  maximum: AMOUNT_MAX,
  description: 'A whole number of credits.',
  examples: [100],
});

export function amountOf(description: string, least: 0 | 1 = 1) {
  return Type.Integer({ ...INT64, minimum: least, maximum: AMOUNT_MAX, description });
}

export const HoldId = Type.String({ format: 'uuid', description: 'The `hold_id` that `/hold` returned.' });

export function transactionIdOf(description: string) {
  return Type.String({ format: 'uuid', description });
}

export function timestamp(example: string, description?: string) {
  return Type.String({ format: 'date-time', ...(description ? { description } : {}), examples: [example] });
}

export const CycleStart = timestamp('2026-11-20T08:00:03.123Z');
export const CycleEnd = timestamp('2026-12-21T08:00:03.123Z');
export const CycleType = Type.String({ enum: ['recurring', 'one-time'] });

export const ValidityDays = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  format: 'int64',
  minimum: 1,
  // There is no `default`: generated clients would send it together with `validity_months`.
  description: `How long the credits are valid, in 24-hour days. If you send neither \`validity_days\` nor \`validity_months\`, the validity is ${VALIDITY_DAYS_DEFAULT} days. All credits expire by 9999-12-31T23:59:59.999Z, so a number of more than ${VALIDITY_DAYS_MAX} days has the same effect as ${VALIDITY_DAYS_MAX} days.`,
  examples: [31],
});

export const ValidityMonths = Type.Optional(
  Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    minimum: 1,
    maximum: VALIDITY_MONTHS_MAX,
    description:
      'How long the credits are valid, in calendar months (UTC). Do not send both `validity_months` and `validity_days`. Each period ends on the day of the month on which the first period started. If a month has no such day, the period ends on the last day of the month.',
  }),
);

/** For the document: `validity_days` and `validity_months` must not both be numbers. */
export const ONE_VALIDITY = {
  not: {
    required: ['validity_days', 'validity_months'],
    properties: { validity_days: { type: 'integer' }, validity_months: { type: 'integer' } },
  },
} as const;

/** `maxLength` counts Unicode code points. `submit.ts` refuses characters that a note must not contain. */
export const Note = Type.Optional(
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    minLength: 1,
    maxLength: NOTE_LENGTH_MAX,
    description:
      'Text that explains the request, such as the ID of an order or a job. Scrip stores the note with the transaction. The list of transactions includes notes if you request `details`.',
  }),
);

/** An instant in a request, in any time zone. */
export function instantField(description: string, example?: string) {
  return Type.String({
    format: 'date-time',
    description: `${description} The format is ISO 8601 with a time zone. In a query string, write \`+\` as \`%2B\`.`,
    ...(example === undefined ? {} : { examples: [example] }),
  });
}

/** A request is refused if it has a field that its schema does not list. */
export const strict = { additionalProperties: false } as const;

export const EndUserQuery = Type.Object({ end_user_id: EndUserId }, strict);
export const NoQuery = Type.Object({}, strict);

export type EndUserQuery = Static<typeof EndUserQuery>;
