// docs/operating/limits.md says what the source does: each number in its tables is that of the constant named beside it.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const REPOSITORY = join(import.meta.dirname, '../..');

/** Where the constants are. */
const MODULES = [
  'accounts/rate-limit',
  'batching/group-commit',
  'console/pages/adjust-forms',
  'config',
  'http/authenticate',
  'http/connection',
  'http/idempotency-key',
  'http/reading-in-pieces',
  'http/refused-connections',
  'http/schemas',
  'http/server-limits',
  'http/shared-places',
  'http/transaction-list',
  'http/unsent-answers',
  'http/work-in-flight',
  'ledger/amount',
  'ledger/instant',
];

/** All of these have to be in the table. */
const COMPLETE = [
  'http/server-limits',
  'http/work-in-flight',
  'http/connection',
  'http/reading-in-pieces',
  'http/refused-connections',
  'http/shared-places',
];

interface Row {
  readonly name: string;
  readonly value: number;
}

async function constantsOf(module: string): Promise<Map<string, number>> {
  const exported = (await import(join(REPOSITORY, 'src', `${module}.ts`))) as Record<string, unknown>;
  const constants = new Map<string, number>();
  for (const [name, value] of Object.entries(exported)) {
    if (typeof value === 'number') constants.set(name, value);
    if (name !== 'QUEUE_LIMITS') continue;
    for (const [member, bound] of Object.entries(value as Record<string, number>))
      constants.set(`${name}.${member}`, bound);
  }
  return constants;
}

const LIMITS = await readFile(join(REPOSITORY, 'docs/operating/limits.md'), 'utf8');

const rows: Row[] = LIMITS.split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Limit|---)/.test(line))
  .map((line) => {
    const [, name = '', value = ''] =
      /\| `([\w.]+)` = ([\d,]+) +\|/.exec(line) ?? assert.fail(`no constant in ${line}`);
    return { name, value: Number(value.replaceAll(',', '')) };
  });

test('each number in the tables is that of its constant', async () => {
  const constants = new Map<string, number>();
  for (const module of MODULES) for (const [name, value] of await constantsOf(module)) constants.set(name, value);
  assert(rows.length > 25);
  for (const { name, value } of rows) assert.equal(value, constants.get(name), name);
});

test('no bound of the server is missing from them', async () => {
  const shown = new Set(rows.map(({ name }) => name));
  for (const module of COMPLETE)
    for (const name of (await constantsOf(module)).keys()) assert(shown.has(name), `${name} has a row`);
});

test('what people read agrees with the number beside it', () => {
  const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 2 ** 20, s: 1_000, h: 1, characters: 1 };
  for (const line of LIMITS.split('\n')) {
    const [, amount = '', unit = '', exact = ''] =
      /^\| [^|]+\| ([\d.,]+) ?(\w*) +\| `[\w.]+` = ([\d,]+)/.exec(line) ?? [];
    if (amount === '') continue;
    const factor = UNITS[unit] ?? assert.fail(`a unit in ${line}`);
    assert.equal(Number(amount.replaceAll(',', '')) * factor, Number(exact.replaceAll(',', '')), line);
  }
});
