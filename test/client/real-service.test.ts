// Tests what the client's calls return on the real service, and which errors they throw.

import assert from 'node:assert/strict';
import { after, before, mock, test } from 'node:test';
import { inspect } from 'node:util';
import {
  BalanceTooLarge,
  ConnectionFailed,
  CycleAlreadyActive,
  CycleNotFound,
  createdAt,
  Forbidden,
  InsufficientFunds,
  Internal,
  InvalidField,
  NotFound,
  OutcomeUnknown,
  PayloadTooLarge,
  Scrip,
  ScripError,
  StoreUnavailable,
  Unauthorized,
} from '../../client/src/scrip.ts';
import { type FaultCode, StoreFault } from '../../src/store/store-fault.ts';
import { type Scrip as Service, someone, startScrip } from '../http/running-service.ts';
import { HostileScrip, refuses, sends } from './hostile-scrip.ts';

let service: Service;
let scrip: Scrip;
before(async () => {
  service = await startScrip();
  scrip = new Scrip({ apiKey: service.writeKey, baseUrl: service.url, retries: 0 });
});
after(() => service.stop());

async function errorFrom<Kind extends ScripError>(
  call: Promise<unknown>,
  Class: new (...args: never[]) => Kind,
): Promise<Kind> {
  const error = await call.then(
    () => assert.fail(`${Class.name} was expected`),
    (error) => error,
  );
  assert(error instanceof Class, inspect(error));
  assert(error instanceof ScripError);
  assert.equal(error.name, Class.name);
  return error;
}

test('the client adds, subtracts and reads credits', async () => {
  const end_user_id = someone();
  const added = await scrip.add({ end_user_id, amount: 100, validity_days: 14 });
  const subtracted = await scrip.subtract({ end_user_id, amount: 30 });
  const balance = await scrip.getActiveBalance({ end_user_id });
  assert.equal(balance.active_balance, 70);
  const [cycle] = balance.active_balance_by_cycle;
  assert(cycle);
  assert.deepEqual([cycle.amount, cycle.starting_amount, cycle.cycle_type], [70, 100, 'one-time']);
  assert.equal(Date.parse(cycle.cycle_end) - Date.parse(cycle.cycle_start), 14 * 86_400_000);
  const { transactions } = await scrip.getAllUserTransactions({ end_user_id });
  assert.deepEqual(
    transactions.map(({ amount }) => amount),
    [-30, 100],
  );
  const [spent, granted] = transactions;
  assert.deepEqual(added, { end_user_id, amount: 100, transactionId: granted?.transaction_id });
  assert.deepEqual(subtracted, { end_user_id, amount: 30, transactionId: spent?.transaction_id });
});

test('the client starts, replaces and stops cycles', async () => {
  const end_user_id = someone();
  const started = await scrip.startCycle({ end_user_id, amount: 1000, validity_days: null });
  assert.deepEqual([started.amount, started.cycle_type, started.status], [1000, 'recurring', 'active']);
  const replaced = await scrip.startCycle({ end_user_id, amount: 5000, on_active: 'replace' });
  assert.equal(replaced.amount, 5000);
  const { transactionId, ...stopped } = await scrip.stopCycle({ end_user_id });
  assert.notEqual(transactionId, replaced.transactionId);
  assert.deepEqual({ ...stopped, transactionId: null }, { ...replaced, status: 'canceled', transactionId: null });
  assert.equal((await scrip.getActiveBalance({ end_user_id })).active_balance, 6000);
});

test('createdAt reads the creation time of a cycle as UTC, regardless of the local time zone', async () => {
  const { TZ } = process.env;
  process.env.TZ = 'America/New_York';
  try {
    assert.equal(new Date('2026-11-20T08:00:00').toISOString(), '2026-11-20T13:00:00.000Z', 'local time is not UTC');
    const end_user_id = someone();
    const cycle = await scrip.startCycle({ end_user_id, amount: 1000 });
    assert.equal(createdAt(cycle).toISOString(), cycle.current_cycle_start);
    const { cycle: active } = await errorFrom(scrip.startCycle({ end_user_id, amount: 1 }), CycleAlreadyActive);
    assert.equal(createdAt(active).toISOString(), cycle.current_cycle_start);
    assert.equal(createdAt(await scrip.stopCycle({ end_user_id })).toISOString(), cycle.current_cycle_start);
  } finally {
    if (TZ === undefined) delete process.env.TZ;
    else process.env.TZ = TZ;
  }
});

test('the client accepts unknown members in responses, in lists and in problem documents', async () => {
  const newer = await HostileScrip.start();
  try {
    const impatient = new Scrip({ apiKey: service.writeKey, baseUrl: newer.url, retries: 0 });
    const end_user_id = someone();
    const balance = { end_user_id, active_balance: 7, active_balance_by_cycle: [{ amount: 7, held: 1 }], held: 1 };
    const list = { end_user_id, transactions: [{ amount: 7, kind: 'addition' }], next_cursor: null, total: 1 };
    newer.behave(sends(200, JSON.stringify(balance)), sends(200, JSON.stringify(list)));
    assert.deepEqual(await impatient.getActiveBalance({ end_user_id }), balance);
    assert.deepEqual(await Array.fromAsync(impatient.transactions({ end_user_id })), list.transactions);
    const extras = {
      requested: 130,
      available: 100,
      shortfall: 30,
      error_code: 'INSUFFICIENT_FUNDS',
      advice: ['wait'],
    };
    newer.behave(refuses(402, 'InsufficientFunds', extras));
    const poor = await errorFrom(impatient.subtract({ end_user_id, amount: 130 }), InsufficientFunds);
    assert.deepEqual([poor.available, poor.problem], [100, { ...poor.problem, ...extras }]);
  } finally {
    await newer.stop();
  }
});

test('if Scrip refuses a client call, the call throws the matching error, with the members of the problem document', async () => {
  const end_user_id = someone();
  const { transactionId: _, ...cycle } = await scrip.startCycle({ end_user_id, amount: 100 });
  const poor = await errorFrom(scrip.subtract({ end_user_id, amount: 130 }), InsufficientFunds);
  assert.deepEqual([poor.status, poor.error], [402, 'InsufficientFunds']);
  assert.deepEqual([poor.requested, poor.available, poor.shortfall], [130, 100, 30]);
  assert.equal(poor.detail, poor.problem?.detail);
  assert.equal(poor.problem?.request_id, poor.requestId);
  assert(poor.message.includes(poor.detail) && poor.message.includes(poor.requestId ?? '?'), poor.message);
  const active = await errorFrom(scrip.startCycle({ end_user_id, amount: 1 }), CycleAlreadyActive);
  assert.deepEqual(active.cycle, cycle);
  const much = await errorFrom(scrip.add({ end_user_id, amount: Number.MAX_SAFE_INTEGER }), BalanceTooLarge);
  assert.deepEqual(
    [much.requested, much.available],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 100],
    'the error contains how many credits can be added',
  );
  assert.equal((await errorFrom(scrip.stopCycle({ end_user_id: someone() }), CycleNotFound)).status, 404);
});

test('a client call throws InvalidField with the paths of invalid fields, PayloadTooLarge for a very long field, and NotFound for an unknown path', async () => {
  const end_user_id = someone();
  const wrong = await errorFrom(scrip.add({ end_user_id: 'not-a-uuid', amount: 0 }), InvalidField);
  assert.deepEqual(wrong.errors.map(({ path }) => path).sort(), ['/amount', '/end_user_id']);
  await errorFrom(scrip.getActiveBalance({ end_user_id: 'not-a-uuid' }), InvalidField);
  const misspelled = { end_user_id, amount: 1, validity_day: 3 };
  assert.equal((await errorFrom(scrip.add(misspelled), InvalidField)).errors[0]?.path, '/validity_day');
  await errorFrom(scrip.add({ end_user_id: 'x'.repeat(70_000), amount: 1 }), PayloadTooLarge);
  const elsewhere = new Scrip({ apiKey: service.writeKey, baseUrl: `${service.url}/elsewhere` });
  await errorFrom(elsewhere.add({ end_user_id, amount: 1 }), NotFound);
});

test('the baseUrl of a client can have a path, such as the version prefix /v1/', async () => {
  const end_user_id = someone();
  const versioned = new Scrip({ apiKey: service.writeKey, baseUrl: `${service.url}/v1/` });
  await versioned.add({ end_user_id, amount: 5 });
  assert.equal((await scrip.getActiveBalance({ end_user_id })).active_balance, 5);
});

test('a client call with an unknown API key throws Unauthorized, and a write with a read-only key throws Forbidden', async () => {
  const end_user_id = someone();
  const stranger = new Scrip({ apiKey: 'scrip_write_unknown', baseUrl: service.url });
  await errorFrom(stranger.add({ end_user_id, amount: 1 }), Unauthorized);
  const reader = new Scrip({ apiKey: service.readKey, baseUrl: service.url });
  await errorFrom(reader.add({ end_user_id, amount: 1 }), Forbidden);
  assert.equal((await reader.getActiveBalance({ end_user_id })).active_balance, 0);
});

test("if the store fails, a client call throws the matching error, with the call's idempotency key", async () => {
  const faults = { StoreUnavailable, OutcomeUnknown, Internal } satisfies Record<FaultCode, unknown>;
  for (const [code, Class] of Object.entries(faults)) {
    mock.method(service.service.stores.ledger, 'write', () =>
      Promise.reject(new StoreFault(code as FaultCode, 'for the test')),
    );
    const error = await errorFrom(scrip.add({ end_user_id: someone(), amount: 1 }), Class);
    assert.match(error.idempotencyKey ?? '', /^[0-9a-f-]{36}$/);
    mock.restoreAll();
  }
});

test('the client retries a call until a temporary fault is over', async () => {
  const end_user_id = someone();
  const refusing = mock.method(service.service.stores.ledger, 'write', () =>
    Promise.reject(new StoreFault('StoreUnavailable', 'for the test')),
  );
  const patient = new Scrip({ apiKey: service.writeKey, baseUrl: service.url });
  const call = patient.add({ end_user_id, amount: 7 });
  setTimeout(() => refusing.mock.restore(), 500);
  assert.equal((await call).amount, 7);
  assert.equal((await scrip.getActiveBalance({ end_user_id })).active_balance, 7);
});

test('if a problem document has an unknown error name, or lacks members of a known error, a call throws a ScripError with the name from the document', async () => {
  const hostile = await HostileScrip.start();
  try {
    const client = new Scrip({ apiKey: 'scrip_write_canary', baseUrl: hostile.url });
    for (const error of ['AccountFrozen', 'InsufficientFunds', 'constructor']) {
      hostile.behave(refuses(402, error));
      const thrown = await client.subtract({ end_user_id: someone(), amount: 1 }).catch((thrown) => thrown);
      assert(thrown instanceof ScripError && !(thrown instanceof InsufficientFunds), inspect(thrown));
      assert.deepEqual([thrown.error, thrown.status, thrown.requestId], [error, 402, 'r-1']);
    }
  } finally {
    await hostile.stop();
  }
});

test('the API key does not appear in errors, or in the output when a program logs the client', async () => {
  const secret = 'CANARYCANARYCANARY';
  const apiKey = `scrip_write_${secret}`;
  const shown: unknown[] = [];
  const keep = (error: unknown) => shown.push(error);
  const options = { apiKey, baseUrl: service.url, retries: 0 };
  const client = new Scrip(options);
  const end_user_id = someone();
  await client.add({ end_user_id, amount: 1 }).catch(keep);
  await client.getActiveBalance({ end_user_id }).catch(keep);
  await new Scrip({ ...options, baseUrl: 'http://127.0.0.1:1' }).add({ end_user_id, amount: 1 }).catch(keep);
  await client.add({ end_user_id, amount: 1 }, { idempotencyKey: 'ends with a line\n' }).catch(keep);
  await client.add({ end_user_id, amount: 1n as unknown as number }).catch(keep);
  const invalid = [
    { apiKey: `${apiKey}\n` },
    { apiKey: ` ${apiKey}` },
    { apiKey: `${apiKey}é` },
    { baseUrl: `http://user:${secret}@127.0.0.1` },
    { baseUrl: `http://127.0.0.1/?key=${secret}` },
    { baseUrl: `127.0.0.1/${secret}` },
  ];
  for (const wrong of invalid)
    assert.throws(
      () => new Scrip({ ...options, ...wrong }),
      (error) => keep(error) > 0,
    );
  assert.equal(shown.length, 5 + invalid.length, 'each of these calls fails');
  assert.equal(shown.filter((error) => error instanceof ConnectionFailed).length, 1);
  for (const value of [client, ...shown]) {
    const texts = [String(value), JSON.stringify(value), inspect(value, { depth: 20, showHidden: true })];
    for (const text of [...texts, (value as Error).stack ?? '', (value as Error).message ?? ''])
      assert(!text.includes(secret), 'the API key does not appear');
  }
});

test('invalid client options throw a TypeError', () => {
  const options = { apiKey: 'scrip_write_canary', baseUrl: service.url };
  const wrong: readonly Record<string, unknown>[] = [
    { apiKey: '' },
    { apiKey: undefined },
    { baseUrl: '' },
    { baseUrl: undefined },
    { baseUrl: 'ftp://credits.example' },
    { timeoutMs: 0 },
    { timeoutMs: 2 ** 31 },
    { timeoutMs: Number.NaN },
    { retries: -1 },
    { retries: 11 },
    { retries: Number.POSITIVE_INFINITY },
  ];
  for (const one of wrong) assert.throws(() => new Scrip({ ...options, ...one } as never), TypeError, inspect(one));
  assert(new Scrip({ ...options, timeoutMs: 2 ** 31 - 1, retries: 10 }));
});
