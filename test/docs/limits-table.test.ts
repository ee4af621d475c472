// Tests that each number in docs/operating/limits.md equals the constant that its row names.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY, textOf } from './documents.ts';

const MODULES = [
  'accounts/rate-limit',
  'batching/group-commit',
  'config',
  'events/webhooks/addresses',
  'events/webhooks/deliveries',
  'events/webhooks/endpoint-sender',
  'events/webhooks/endpoints',
  'events/webhooks/request',
  'events/webhooks/sending-gate',
  'http/auth/authenticator',
  'http/api/calls/transactions',
  'http/api/list-source',
  'http/limits',
  'ledger/amount',
  'ledger/batch',
  'ledger/history',
  'ledger/hold',
  'ledger/instant',
  'ledger/posting',
  'store/transaction-history',
];

/** docs/operating/limits.md must contain all constants of these modules. */
const COMPLETE = ['http/limits'];

interface Row {
  readonly name: string;
  readonly value: number;
}

async function constantsOf(module: string): Promise<Map<string, number>> {
  const exported = (await import(join(REPOSITORY, 'src', `${module}.ts`))) as Record<string, unknown>;
  const constants = new Map<string, number>();
  for (const [name, value] of Object.entries(exported)) {
    if (typeof value === 'number') constants.set(name, value);
    if (!/^(QUEUE|SERVER)_LIMITS$/.test(name)) continue;
    for (const [member, bound] of Object.entries(value as Record<string, number>))
      constants.set(`${name}.${member}`, bound);
  }
  return constants;
}

const LIMITS = textOf('docs/operating/limits.md');

const rows: Row[] = LIMITS.split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Limit|---)/.test(line))
  .map((line) => {
    const [, name = '', value = ''] =
      /\| `([\w.]+)` = ([\d,]+) +\|/.exec(line) ?? assert.fail(`no constant in ${line}`);
    return { name, value: Number(value.replaceAll(',', '')) };
  });

test('each limit in the documentation equals its constant in the code', async () => {
  const constants = new Map<string, number>();
  for (const module of MODULES) for (const [name, value] of await constantsOf(module)) constants.set(name, value);
  assert(rows.length > 25);
  for (const { name, value } of rows) assert.equal(value, constants.get(name), name);
});

test('each limit of the server is in the documentation', async () => {
  const shown = new Set(rows.map(({ name }) => name));
  for (const module of COMPLETE)
    for (const name of (await constantsOf(module)).keys()) assert(shown.has(name), `${name} is not in the tables`);
});

test('for each limit in the documentation, the value with a unit (such as 64 KiB) equals the value of the constant (65,536)', () => {
  const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 2 ** 20, s: 1_000, h: 1, characters: 1 };
  for (const line of LIMITS.split('\n')) {
    const [, amount = '', unit = '', exact = ''] =
      /^\| [^|]+\| ([\d.,]+) ?(\w*) +\| `[\w.]+` = ([\d,]+)/.exec(line) ?? [];
    if (amount === '') continue;
    const factor = UNITS[unit] ?? assert.fail(`unknown unit in ${line}`);
    assert.equal(Number(amount.replaceAll(',', '')) * factor, Number(exact.replaceAll(',', '')), line);
  }
});
