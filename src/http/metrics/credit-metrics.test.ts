// The metrics of credits by account and API key: what is counted, and the limit on the number of series.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import type { WriteCommand } from '../../ledger/command.ts';
import { COUNTED_CALLERS_MAX, CreditMetrics } from './credit-metrics.ts';

const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

async function samplesOf(registry: Registry): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

function setUp() {
  const registry = new Registry();
  const metrics = new CreditMetrics(registry);
  const count = (kind: 'add' | 'subtract' | 'start-cycle', amount: number, account: number, actor: string) =>
    metrics.count({
      kind,
      amount,
      account,
      actor,
      endUser: END_USER,
      validityDays: 31,
      onActive: 'refuse',
    } as WriteCommand);
  return { registry, metrics, count };
}

test('credits are counted by account and API key, and the credits of all console users of an account together', async () => {
  const { registry, metrics, count } = setUp();
  count('add', 100, 1, 'key:1');
  count('start-cycle', 1_000, 1, 'key:2');
  count('subtract', 30, 1, 'key:1');
  count('subtract', 40, 2, 'key:3');
  count('add', 5, 1, 'user:a7');
  count('add', 6, 1, 'user:b8');
  metrics.count({ kind: 'stop-cycle', account: 9, actor: 'key:9', endUser: END_USER });
  const expected = {
    'scrip_credits_granted_total{account="1",key="1"}': 100,
    'scrip_credits_granted_total{account="1",key="2"}': 1_000,
    'scrip_credits_granted_total{account="2",key="3"}': 0,
    'scrip_credits_granted_total{account="1",key="console"}': 11,
    'scrip_credits_spent_total{account="1",key="1"}': 30,
    'scrip_credits_spent_total{account="1",key="2"}': 0,
    'scrip_credits_spent_total{account="2",key="3"}': 40,
    'scrip_credits_spent_total{account="1",key="console"}': 0,
  };
  assert.deepEqual(await samplesOf(registry), expected);
  assert.deepEqual(await samplesOf(registry), expected, 'a scrape does not change the counts');
});

test('beyond a maximum number of API keys, the credits of further keys are counted together', async () => {
  const { registry, count } = setUp();
  for (let key = 1; key <= COUNTED_CALLERS_MAX; key++) count('add', 1, key, `key:${key}`);
  assert.equal(Object.keys(await samplesOf(registry)).length, 2 * COUNTED_CALLERS_MAX);
  for (let key = 1; key <= COUNTED_CALLERS_MAX + 50; key++) count('subtract', 2, key, `key:${key}`);
  const samples = await samplesOf(registry);
  assert.equal(Object.keys(samples).length, 2 * COUNTED_CALLERS_MAX + 2);
  assert.equal(samples['scrip_credits_spent_total{account="7",key="7"}'], 2);
  assert.equal(samples['scrip_credits_spent_total{account="other",key="other"}'], 100);
});
