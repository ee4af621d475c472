// The table of end users against a Map, under as much coming and going as a busy writer has; and that it sorts as rows do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../../../test/load/random.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { NO_SLOT, type Slot, UserTable } from './user-table.ts';

const STEPS = 40_000;
const USERS = 6_000;

/** Some differ in the account, the first digits or the last ones only. */
function user(number: number): EndUserKey {
  const digits = number.toString(16).padStart(4, '0');
  const endUser =
    number % 3 === 0
      ? `${digits}ffff-9abc-4def-8000-fedcba987654`
      : `00000000-0000-4000-8000-00000000${digits}`.toLowerCase();
  return { account: 1 + (number % 2) * 3_000_000_000, endUser };
}

const nameOf = ({ account, endUser }: EndUserKey) => `${account}/${endUser}`;

test('an end user is found in its slot until it is removed, whoever comes and goes beside it', () => {
  const random = new Random(11);
  const table = new UserTable();
  const known = new Map<string, Slot>();
  for (let step = 0; step < STEPS; step++) {
    const one = user(random.below(USERS));
    const slot = known.get(nameOf(one));
    assert.equal(table.find(one), slot ?? NO_SLOT, `step ${step}`);
    if (slot !== undefined && random.below(3) > 0) {
      table.remove(slot);
      known.delete(nameOf(one));
      continue;
    }
    const given = table.add(one);
    assert.equal(given, slot ?? given, 'whoever has a slot keeps it');
    assert.deepEqual(table.user(given), one);
    assert(given < table.capacity);
    known.set(nameOf(one), given);
  }
  assert.equal(table.size, known.size);
  assert.deepEqual(new Set(table.slots()), new Set(known.values()));
  for (const [name, slot] of known) assert.equal(nameOf(table.user(slot)), name);
});

test('end users sort as their UUIDs do', () => {
  const table = new UserTable();
  const users = ['ffffffff', '80000000', '7fffffff', '00000000'].flatMap((first) =>
    ['ffffffffffff', '800000000000', '000000000000'].map((last) => ({
      account: 1,
      endUser: `${first}-0000-4000-8000-${last}`,
    })),
  );
  const slots = users.map((one) => table.add(one));
  const sorted = slots.toSorted((a, b) => table.compare(a, b)).map((slot) => table.user(slot).endUser);
  assert.deepEqual(sorted, users.map(({ endUser }) => endUser).toSorted());
});

test('neighbours have the account and the first three digits in common', () => {
  const table = new UserTable();
  const slot = (account: number, first: string) =>
    table.neighbourhood(table.add({ account, endUser: `${first}-0000-4000-8000-000000000000` }));
  assert.equal(slot(1, 'abc00000'), slot(1, 'abcfffff'));
  const others = [
    slot(1, 'abc00000'),
    slot(1, 'abd00000'),
    slot(1, 'fff00000'),
    slot(2, '00000000'),
    slot(2, 'abc00000'),
  ];
  assert.equal(new Set(others).size, others.length);
});
