// Random histories of one end user: commands of all kinds at random instants.

import fc from 'fast-check';
import type { Command } from '../../src/ledger/command.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
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

/** Chooses a command when it is run, so that the command can refer to existing holds and transactions. */
type CommandFor = (ledger: MemoryLedger) => Command;

const days = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.constant(2_932_897));
const holdSeconds = fc.constantFrom(1, 3_600, 86_400, 2 * 86_400, 9 * 86_400, 30 * 86_400);
const onActive = fc.constantFrom('refuse' as const, 'replace' as const);
/** The position of an id, counted back from the latest id. */
const places = fc.nat({ max: 7 });

function commandsOf(amounts: fc.Arbitrary<number>): fc.Arbitrary<CommandFor> {
  const requests: fc.Arbitrary<Command> = fc.oneof(
    fc.tuple(amounts, days).map(([amount, validityDays]) => add(amount, { validityDays })),
    { weight: 2, arbitrary: amounts.map((amount) => subtract(amount)) },
    fc
      .tuple(amounts, days, onActive)
      .map(([amount, validityDays, onActive]) => startCycle(amount, { validityDays, onActive })),
    fc.constant(stopCycle()),
    fc.constant(settling()),
    {
      weight: 2,
      arbitrary: fc.tuple(amounts, holdSeconds).map(([amount, expiresInSeconds]) => hold(amount, { expiresInSeconds })),
    },
  );
  return fc.oneof(
    { weight: 11, arbitrary: requests.map((command) => () => command) },
    { weight: 3, arbitrary: fc.tuple(places, fc.option(amounts)).map(captureOf) },
    { weight: 1, arbitrary: places.map(releaseOf) },
    {
      weight: 2,
      arbitrary: fc.tuple(places, fc.option(amounts), fc.option(fc.integer({ min: 1, max: 4 }))).map(refundOf),
    },
  );
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

/** The id of a subtraction or capture. */
function latestSpent({ postings }: MemoryLedger, place: number): string {
  const spent = postings.filter(({ kind }) => kind === 'subtract' || kind === 'capture');
  const ids = spent.map(({ transactionId }) => transactionId);
  return latestId(ids, place);
}

function latestId(ids: readonly string[], place: number): string {
  return ids.at(-1 - (place % Math.max(1, ids.length))) ?? idAt(NOW);
}

/** The pause after a command. It often ends exactly at the end of a cycle, or a millisecond before or after it. */
const pauses = fc.oneof(
  fc.constantFrom(0, 0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS),
  fc.integer({ min: 0, max: 6 * HOUR_MS }),
  fc.integer({ min: 0, max: 9 * DAY_MS }),
);

/**
 * Random commands at random instants. The clock also advances after the last command, so renewals may be due at the
 * end.
 */
export function historiesOf(amounts: fc.Arbitrary<number>): fc.Arbitrary<MemoryLedger> {
  return fc.array(fc.tuple(commandsOf(amounts), pauses), { minLength: 1, maxLength: 30, size: 'max' }).map((steps) => {
    const ledger = new MemoryLedger();
    for (const [command, pause] of steps) {
      ledger.run(command(ledger));
      ledger.now += pause;
    }
    return ledger;
  });
}

/** Histories with amounts that often exceed the balance, but not always. */
export const histories = historiesOf(fc.integer({ min: 1, max: 40 }));
