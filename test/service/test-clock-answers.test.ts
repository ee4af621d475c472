// Tests that moving the test clock changes responses in the same way as moving the machine's clock. Only IDs
// and the timestamps of errors differ.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { MovableClock, type Reply, type Scrip, startScrip } from '../http/running-service.ts';
import { Random } from '../load/random.ts';

const BEGIN = '2027-01-29T10:00:00.000Z';
const STEPS = 150;
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

interface Step {
  readonly path: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly days: number;
}

function someSteps(random: Random): Step[] {
  const users = [random.uuid(), random.uuid()];
  const requests: readonly (() => Pick<Step, 'path' | 'fields'>)[] = [
    () => ({ path: '/add', fields: { amount: 1 + random.below(90), validity_days: 1 + random.below(60) } }),
    () => ({ path: '/add', fields: { amount: 1 + random.below(90), validity_months: 1 + random.below(3) } }),
    () => ({ path: '/subtract', fields: { amount: 1 + random.below(60) } }),
    () => ({
      path: '/hold',
      fields: { amount: 1 + random.below(30), expires_in_seconds: 1 + random.below(2_000_000) },
    }),
    () => ({ path: '/stop-cycle', fields: {} }),
    () => ({
      path: random.pick(['/start-cycle', '/start-cycle', '/preview-change']),
      fields: {
        amount: 1 + random.below(90),
        ...random.pick([{ validity_months: 1 }, { validity_days: 1 + random.below(40) }]),
        rollover_max: random.below(50),
        on_active: random.pick(['replace', 'at_period_end']),
      },
    }),
  ];
  return Array.from({ length: STEPS }, () => {
    const { path, fields } = random.pick(requests)();
    const days = random.pick([0, 0, 0, 1, 2, 10, 31]);
    return { path, fields: { end_user_id: random.pick(users), ...fields }, days };
  });
}

async function answersOf(scrip: Scrip, steps: readonly Step[], advance: (days: number) => Promise<void>) {
  const answers: string[] = [];
  const note = ({ status, text }: Reply) => answers.push(`${status} ${text}`);
  for (const { path, fields, days } of steps) {
    if (days > 0) await advance(days);
    note(await scrip.post(path, fields));
    const { end_user_id } = fields as { end_user_id: string };
    for (const read of ['/get-active-balance', '/get-holds']) note(await scrip.get(read, { end_user_id }));
  }
  for (const end_user_id of new Set(steps.map(({ fields }) => fields.end_user_id as string))) {
    note(await scrip.get('/get-all-user-transactions', { end_user_id, details: 'true' }));
    note(await scrip.get('/get-balance-history', { end_user_id, interval: 'month' }));
  }
  return answers.map(withoutIds);
}

function withoutIds(text: string): string {
  const seen = new Map<string, number>();
  return text
    .replaceAll(/"(request_id|timestamp)":"[^"]+"/g, '"$1":"…"')
    .replaceAll(UUID, (id) => `#${seen.get(id) ?? seen.set(id, seen.size).get(id)}`);
}

test(`a ledger whose test clock is moved gives the same responses as a ledger on a machine whose clock is moved (SEED=${SEED})`, async () => {
  const steps = someSteps(new Random(SEED));
  const [machine, real] = [new MovableClock(BEGIN), new MovableClock(BEGIN)];
  const tested = await startScrip({ clock: machine, testClock: true });
  const moved = await startScrip({ clock: real });
  try {
    const shown = await answersOf(tested, steps, async (days) => {
      const reply = await tested.post('/test-clock', { advance_days: days });
      assert.equal(reply.status, 200, reply.text);
    });
    const expected = await answersOf(moved, steps, async (days) => real.advance(days * DAY_MS));
    assert(
      expected.some((each) => each.includes('"kind":"renew"')) && expected.some((each) => each.startsWith('402 ')),
    );
    assert.deepEqual(shown, expected);
    await tested.assertConsistent();
  } finally {
    await Promise.all([tested.stop(), moved.stop()]);
  }
});
