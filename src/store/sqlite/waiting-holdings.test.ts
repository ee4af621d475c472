// What is known of end users who wait, against objects that are copied whole: spent, opened, posted and forgotten in any
// order, with few cycles and with many.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../../../test/load/random.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { transactionId } from '../../ledger/transaction-id.ts';
import { Heads } from './heads.ts';
import type { Holdings } from './rows.ts';
import { WaitingHoldings } from './waiting-holdings.ts';

const DAY_MS = 86_400_000;
const USERS = 40;
const STEPS = 6_000;
const CYCLES_MAX = 16;

interface Known {
  stored: Holdings;
  current: Holdings;
}

let made = 0;
function cycle(): Cycle {
  made += 1;
  const start = 1_700_000_000_000 + made;
  const id = transactionId({ at: start, sequence: 1, tail: made.toString(16).padStart(12, '0') });
  const credits = { amount: 100 + (made % 7), remaining: 100 + (made % 7) };
  return {
    id,
    period: 0,
    type: 'one-time',
    status: 'active',
    ...credits,
    start,
    end: start + 31 * DAY_MS,
    validityDays: 31,
  };
}

function endUser(number: number) {
  return { account: 1, endUser: `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000` };
}

/** The next holdings: credits are spent from some cycles, and now and then one is opened. */
function moved({ cycles, latestPosting, postingCount }: Holdings, random: Random): Holdings {
  const after = cycles.map((each) =>
    each.remaining > 0 && random.below(3) === 0 ? { ...each, remaining: each.remaining - 1 } : each,
  );
  if (after.length < CYCLES_MAX && random.below(4) === 0) after.push(cycle());
  const chain = random.below(2) === 0 ? null : 'c'.repeat(43);
  return { cycles: after, latestPosting: (latestPosting ?? 0) + 1, postingCount: postingCount + 1, chain };
}

/** What has to be written to come from what is stored to what is there. */
function differenceOf({ stored, current }: Known) {
  const { cycles, ...own } = current;
  const spent = cycles.filter((each, place) => {
    const before = stored.cycles[place];
    return before !== undefined && before.remaining !== each.remaining;
  });
  return { spent, opened: cycles.slice(stored.cycles.length), own };
}

test('what an end user has and how that differs from what is stored is kept as it is', () => {
  const random = new Random(3);
  const waiting = new WaitingHoldings(new Heads());
  const model = new Map<number, Known>();
  for (let step = 0; step < STEPS; step++) {
    const number = random.below(USERS);
    const user = endUser(number);
    const known = model.get(number);
    if (known === undefined) {
      const stored = { cycles: [cycle()], latestPosting: step + 1, postingCount: 1, chain: null };
      const current = moved(stored, random);
      waiting.add(user, stored, current);
      model.set(number, { stored, current });
      continue;
    }
    const slot = waiting.users.find(user);
    assert.deepEqual(waiting.holdings(slot), known.current, `step ${step}`);
    assert.deepEqual(waiting.difference(slot), differenceOf(known), `step ${step}`);
    assert.equal(waiting.isPosted(slot), known.stored.latestPosting === known.current.latestPosting);
    assert.equal(waiting.waitingPostings(slot), known.current.postingCount - known.stored.postingCount);
    const what = random.below(20);
    if (what === 0) {
      waiting.remove(slot);
      model.delete(number);
    } else if (what < 4) {
      waiting.markPosted(slot);
      known.stored = known.current;
    } else {
      const before = waiting.holdings(slot);
      // Objects of its own, as a decision gives them: the cycles that stay the same are the same objects.
      const after = moved(before, random);
      waiting.change(slot, before, after);
      known.current = after;
    }
    const held = [...model.values()].reduce((sum, { current }) => sum + current.cycles.length, 0);
    assert.equal(waiting.cycleCount, held, `step ${step}`);
  }
  assert(
    [...model.values()].some(({ current }) => current.cycles.length > 12),
    'some have many cycles',
  );
});
