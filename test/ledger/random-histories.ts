// Random histories of one end user: commands of all kinds at random instants.

import fc from 'fast-check';
import type { Command, StartCycle } from '../../src/ledger/command.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import { NEVER, nextEventAt } from '../../src/ledger/next-event.ts';
import {
  add,
  capture,
  hold,
  idAt,
  MemoryLedger,
  NOW,
  refund,
  release,
  settling,
  startCycle,
  stopCycle,
  subtract,
} from './ledger-builders.ts';

type CommandFor = (ledger: MemoryLedger) => Command;

const days = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.constant(2_932_897));
const holdSeconds = fc.constantFrom(1, 3_600, 86_400, 2 * 86_400, 9 * 86_400, 30 * 86_400);
const validities = fc.oneof(
  { weight: 3, arbitrary: days.map((validityDays) => ({ validityDays, validityMonths: null })) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2).map((validityMonths) => ({ validityDays: null, validityMonths })) },
);
const onActive = fc.constantFrom('refuse' as const, 'replace' as const, 'at_period_end' as const);
const places = fc.nat({ max: 7 });

function commandsOf(amounts: fc.Arbitrary<number>): fc.Arbitrary<CommandFor> {
  const requests: fc.Arbitrary<Command> = fc.oneof(
    fc.tuple(amounts, validities).map(([amount, validity]) => add(amount, validity)),
    { weight: 2, arbitrary: amounts.map((amount) => subtract(amount)) },
    { weight: 2, arbitrary: startsOf(amounts) },
    fc.constant(stopCycle()),
    fc.constant(settling()),
    {
      weight: 2,
      arbitrary: fc.tuple(amounts, holdSeconds).map(([amount, expiresInSeconds]) => hold(amount, { expiresInSeconds })),
    },
  );
  return fc.oneof(
    { weight: 12, arbitrary: requests.map((command) => () => command) },
    { weight: 3, arbitrary: fc.tuple(places, fc.option(amounts)).map(captureOf) },
    { weight: 1, arbitrary: places.map(releaseOf) },
    {
      weight: 2,
      arbitrary: fc.tuple(places, fc.option(amounts), fc.option(fc.integer({ min: 1, max: 4 }))).map(refundOf),
    },
  );
}

function startsOf(amounts: fc.Arbitrary<number>): fc.Arbitrary<StartCycle> {
  return fc
    .tuple(amounts, validities, fc.oneof(fc.constant(0), amounts), onActive)
    .map(([amount, validity, rolloverMax, onActive]) => startCycle(amount, { ...validity, rolloverMax, onActive }));
}

function captureOf([place, amount]: [number, number | null]): CommandFor {
  return (ledger) => capture(latestHold(ledger, place), amount);
}

function releaseOf(place: number): CommandFor {
  return (ledger) => release(latestHold(ledger, place));
}

function refundOf([place, amount, validityDays]: [number, number | null, number | null]): CommandFor {
  return (ledger) => refund(latestSpent(ledger, place), amount, { validityDays });
}

function latestHold({ holds }: MemoryLedger, place: number): string {
  const ids = holds.map(({ id }) => id);
  return latestId(ids, place);
}

function latestSpent({ postings }: MemoryLedger, place: number): string {
  const spent = postings.filter(({ kind }) => kind === 'subtract' || kind === 'capture');
  const ids = spent.map(({ transactionId }) => transactionId);
  return latestId(ids, place);
}

function latestId(ids: readonly string[], place: number): string {
  return ids.at(-1 - (place % Math.max(1, ids.length))) ?? idAt(NOW);
}

/** Many pauses end at the next due event (renewal, change of plan or lapse), or a millisecond before or after it. */
const pauses: fc.Arbitrary<(ledger: MemoryLedger) => number> = fc.oneof(
  ...[
    fc.constantFrom(0, 0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS),
    fc.integer({ min: 0, max: 6 * HOUR_MS }),
    fc.integer({ min: 0, max: 9 * DAY_MS }),
  ].map((lengths) => lengths.map((length) => () => length)),
  fc.constantFrom(-1, 0, 0, 1).map((offset) => (ledger: MemoryLedger) => untilNextEvent(ledger, offset)),
);

function untilNextEvent({ state, now }: MemoryLedger, offset: number): number {
  const at = nextEventAt(state);
  return at === NEVER ? 0 : Math.max(0, at + offset - now);
}

/** Renewals may be due when a history ends, because the clock advances after the last command. */
export function historiesOf(amounts: fc.Arbitrary<number>): fc.Arbitrary<MemoryLedger> {
  return fc.array(fc.tuple(commandsOf(amounts), pauses), { minLength: 1, maxLength: 30, size: 'max' }).map((steps) => {
    const ledger = new MemoryLedger();
    for (const [command, pause] of steps) {
      ledger.run(command(ledger));
      ledger.now += pause(ledger);
    }
    return ledger;
  });
}

const amounts = fc.integer({ min: 1, max: 40 });

export const histories = historiesOf(amounts);

export const starts = startsOf(amounts);
