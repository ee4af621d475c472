// Tests that credits are counted by account, API key and kind of request, and that the number of series is limited.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { MemoryLedger, startCycle, stopCycle } from '../../../test/ledger/ledger-builders.ts';
import type { Accepted, StartCycle, WriteCommand } from '../../ledger/command.ts';
import { COUNTED_CALLERS_MAX, CreditMetrics } from './credit-metrics.ts';

const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

async function samplesOf(registry: Registry): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

const ACCEPTED: Accepted = { refused: null, transactionId: '01a1f7f8-384b-4000-8002-8128f99dccfd' };

function setUp() {
  const registry = new Registry();
  const metrics = new CreditMetrics(registry);
  const count = (
    command: { kind: WriteCommand['kind']; amount?: number | null },
    account: number,
    actor: string,
    accepted = ACCEPTED,
  ) => metrics.count({ account, actor, endUser: END_USER, ...command } as WriteCommand, accepted);
  return { registry, count };
}

const GRANTS = ['add', 'start-cycle', 'refund'];
const SERIES = [...GRANTS, 'subtract', 'capture'];

function seriesOf(account: string, key: string, credits: Readonly<Record<string, number>>): Record<string, number> {
  const entries = SERIES.map((kind) => {
    const name = GRANTS.includes(kind) ? 'scrip_credits_granted_total' : 'scrip_credits_spent_total';
    return [`${name}{account="${account}",key="${key}",kind="${kind}"}`, credits[kind] ?? 0];
  });
  return Object.fromEntries(entries);
}

test('credits are counted by account, API key and kind of request; the credits of all console users of an account are counted together', async () => {
  const { registry, count } = setUp();
  count({ kind: 'add', amount: 100 }, 1, 'key:1');
  count({ kind: 'start-cycle', amount: 1_000 }, 1, 'key:2');
  count({ kind: 'subtract', amount: 30 }, 1, 'key:1');
  count({ kind: 'subtract', amount: 40 }, 2, 'key:3');
  count({ kind: 'add', amount: 5 }, 1, 'user:a7');
  count({ kind: 'add', amount: 6 }, 1, 'user:b8');
  count({ kind: 'stop-cycle' }, 9, 'key:9');
  const expected = {
    ...seriesOf('1', '1', { add: 100, subtract: 30 }),
    ...seriesOf('1', '2', { 'start-cycle': 1_000 }),
    ...seriesOf('2', '3', { subtract: 40 }),
    ...seriesOf('1', 'console', { add: 11 }),
  };
  assert.deepEqual(await samplesOf(registry), expected);
  assert.deepEqual(await samplesOf(registry), expected, 'a scrape does not change the counts');
});

test('the credits that a capture spends or a refund restores are counted; holds and releases are not counted', async () => {
  const { registry, count } = setUp();
  const hold = {
    id: '',
    createdAt: 0,
    expiresAt: 1,
    status: 'captured',
    amount: 50,
    returned: 18,
    expired: 0,
  } as const;
  count({ kind: 'hold', amount: 50 }, 1, 'key:1');
  count({ kind: 'release' }, 1, 'key:1', { ...ACCEPTED, hold: { ...hold, status: 'released', captured: 0 } });
  assert.deepEqual(await samplesOf(registry), {});
  count({ kind: 'capture', amount: null }, 1, 'key:1', { ...ACCEPTED, hold: { ...hold, captured: 32 } });
  count({ kind: 'refund', amount: 30 }, 1, 'key:1', { ...ACCEPTED, refund: { restored: 20, expired: 10 } });
  assert.deepEqual(await samplesOf(registry), seriesOf('1', '1', { capture: 32, refund: 20 }));
});

test('the credits of a plan are counted if it starts immediately, but not if it is only scheduled', async () => {
  const registry = new Registry();
  const metrics = new CreditMetrics(registry);
  const ledger = new MemoryLedger();
  const samplesAfter = (...commands: readonly StartCycle[]) => {
    for (const command of commands) {
      const outcome = ledger.run(command);
      assert(outcome.refused === null);
      metrics.count({ ...command, account: 1, actor: 'key:1' }, outcome);
    }
    return samplesOf(registry);
  };
  const counted = (credits: number) => seriesOf('1', '1', { 'start-cycle': credits });
  const later = startCycle(1_000, { onActive: 'at_period_end' });
  assert.deepEqual(await samplesAfter(startCycle(300)), counted(300));
  assert.deepEqual(await samplesAfter(later, later), counted(300), 'nothing was granted yet');
  assert.deepEqual(await samplesAfter(startCycle(20, { onActive: 'replace' })), counted(320));
  assert.deepEqual(await samplesAfter(later), counted(320));
  ledger.run(stopCycle());
  assert.deepEqual(await samplesAfter(later), counted(1_320), 'without an active cycle, the plan starts immediately');
});

test('credits are counted separately for a limited number of API keys, and together for all other keys', async () => {
  const { registry, count } = setUp();
  for (let key = 1; key <= COUNTED_CALLERS_MAX; key++) count({ kind: 'add', amount: 1 }, key, `key:${key}`);
  assert.equal(Object.keys(await samplesOf(registry)).length, SERIES.length * COUNTED_CALLERS_MAX);
  for (let key = 1; key <= COUNTED_CALLERS_MAX + 50; key++) count({ kind: 'subtract', amount: 2 }, key, `key:${key}`);
  const samples = await samplesOf(registry);
  assert.equal(Object.keys(samples).length, SERIES.length * (COUNTED_CALLERS_MAX + 1));
  assert.equal(samples['scrip_credits_spent_total{account="7",key="7",kind="subtract"}'], 2);
  assert.equal(samples['scrip_credits_spent_total{account="other",key="other",kind="subtract"}'], 100);
});
