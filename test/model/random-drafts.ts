// Random drafts of commands.

import fc from 'fast-check';
import { type Draft, type Wanted, WHICH_MAX } from './drafts.ts';
import { MOST } from './model-end-user.ts';

/**
 * Two validities in days. With the first, a cycle that starts at `BEGIN` ends in November 9999. The second is
 * `VALIDITY_DAYS_MAX`, the longest validity that the ledger stores.
 */
const DAYS_BEYOND_9999 = [2_912_384, 2_932_897] as const;

const validityDays = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 6, arbitrary: fc.integer({ min: 4, max: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: DAYS_BEYOND_9999[0] - 30, max: DAYS_BEYOND_9999[1] }) },
);
const inDays = validityDays.map((days) => ({ validityDays: days, validityMonths: null }));
const validityMonths = fc.oneof(
  { weight: 6, arbitrary: fc.constant(1) },
  { weight: 3, arbitrary: fc.integer({ min: 2, max: 13 }) },
  { weight: 1, arbitrary: fc.constant(120) },
);
const inMonths = validityMonths.map((months) => ({ validityDays: null, validityMonths: months }));
const validity = fc.oneof({ weight: 3, arbitrary: inDays }, { weight: 1, arbitrary: inMonths });
const limitOf = (what: Exclude<Wanted, number>['what']): fc.Arbitrary<Wanted> =>
  fc.record({ what: fc.constant(what), more: fc.constantFrom(0 as const, 1 as const) });
const small = fc.integer({ min: 1, max: 60 });
const added: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 30, arbitrary: small },
  { weight: 1, arbitrary: fc.integer({ min: 2 ** 52 - 5, max: 2 ** 52 + 5 }) },
  { weight: 1, arbitrary: fc.integer({ min: MOST - 80, max: MOST }) },
  { weight: 4, arbitrary: limitOf('room') },
  { weight: 3, arbitrary: limitOf('available') },
);
const subtracted: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 10, arbitrary: small },
  { weight: 3, arbitrary: limitOf('balance') },
  { weight: 1, arbitrary: limitOf('available') },
);
const held: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 1, max: 25 }) },
  { weight: 3, arbitrary: limitOf('balance') },
);
const captured: fc.Arbitrary<Wanted | null> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 25 }) },
  { weight: 2, arbitrary: limitOf('held') },
  { weight: 2, arbitrary: limitOf('held and balance') },
);
const refunded: fc.Arbitrary<Wanted | null> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: small },
  { weight: 2, arbitrary: limitOf('refundable') },
);
/** Whole days make some holds lapse exactly at the end of a cycle. */
export const expiresInSeconds = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 2, arbitrary: fc.integer({ min: 4, max: 3_600 }) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }).map((days) => days * 86_400) },
  { weight: 6, arbitrary: fc.integer({ min: 3_601, max: 2_592_000 }) },
  { weight: 2, arbitrary: fc.constant(2_592_000) },
);
const which = fc.nat({ max: WHICH_MAX });
export const notes = ['job 1', 'job 12', 'Antwort für Zoë', `${'é'.repeat(499)}💳`] as const;
const note = fc.option(fc.constantFrom(...notes), { freq: 3 });
export const add = fc
  .tuple(fc.record({ kind: fc.constant('add' as const), amount: added, note }), validity)
  .map(([draft, valid]) => ({ ...draft, ...valid }));
export const subtract = fc.record({ kind: fc.constant('subtract' as const), amount: subtracted, note });
const rolloverMax = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 20 }) },
  { weight: 3, arbitrary: fc.integer({ min: 21, max: 200 }) },
  { weight: 1, arbitrary: fc.integer({ min: 2 ** 52 - 5, max: 2 ** 52 + 5 }) },
);
export const startCycle = fc
  .tuple(
    fc.record({
      kind: fc.constant('start-cycle' as const),
      amount: added,
      rolloverMax,
      onActive: fc.constantFrom('refuse' as const, 'replace' as const, 'at_period_end' as const),
      note,
    }),
    fc.oneof(inDays, inMonths),
  )
  .map(([draft, valid]) => ({ ...draft, ...valid }));
export const stopCycle = fc.record({ kind: fc.constant('stop-cycle' as const), note });
export const hold = fc.record({ kind: fc.constant('hold' as const), amount: held, expiresInSeconds, note });
export const capture = fc.record({ kind: fc.constant('capture' as const), hold: which, amount: captured, note });
export const release = fc.record({ kind: fc.constant('release' as const), hold: which, note });
export const refund = fc.record({
  kind: fc.constant('refund' as const),
  of: which,
  amount: refunded,
  validityDays: fc.option(validityDays, { freq: 2 }),
  note,
});
export const draft: fc.Arbitrary<Draft> = fc.oneof(
  ...[add, subtract, startCycle, stopCycle, hold, capture, release, refund],
);

/**
 * Adds as many credits as the maximum balance allows now, or one more. These credits remain valid after the next
 * renewal.
 */
export const fill = fc
  .record({ kind: fc.constant('add' as const), amount: limitOf('room'), note })
  .map((draft) => ({ ...draft, validityDays: 4_000, validityMonths: null }));
