// Tests that calendar months do not depend on the time zone of the machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { periodAfter, periodsMissed } from '../../src/ledger/cycle.ts';
import { recurring } from './ledger-builders.ts';

for (const zone of ['Asia/Tokyo', 'America/New_York', 'Pacific/Apia']) {
  test(`months are counted in UTC even if the time zone of the machine is ${zone}`, (t) => {
    const before = process.env.TZ;
    t.after(() => {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    });
    process.env.TZ = zone;
    assert.notEqual(new Date(Date.UTC(2026, 0, 1)).getTimezoneOffset(), 0);
    for (const hour of [0, 12, 23]) {
      const cycle = recurring({ start: Date.UTC(2026, 0, 31, hour), validityMonths: 1 });
      for (let count = 1; count <= 24; count++) {
        const lastDay = Date.UTC(2026, count + 1, 0, hour);
        assert.equal(periodAfter(cycle, count).start, lastDay);
        assert.equal(periodsMissed(cycle, lastDay), count);
        assert.equal(periodsMissed(cycle, lastDay - 1), count - 1);
      }
    }
  });
}
