// The tests that every store must pass. At the end of each test, the totals are brought up to date, and the ledger is
// audited. Some tests also audit the ledger before the totals are brought up to date.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { apiKeySecret, SECRET_BYTES } from '../../src/accounts/api-key.ts';
import { effort } from '../effort.ts';
import { apiKeyContract } from './contract/api-keys.ts';
import { consoleReadContract } from './contract/console-reads.ts';
import { cursorContract } from './contract/cursors.ts';
import { digestContract } from './contract/digests.ts';
import { endUserListContract } from './contract/end-user-lists.ts';
import { eventPageContract } from './contract/event-pages.ts';
import { eventTimeContract } from './contract/event-times.ts';
import { eventContract } from './contract/events.ts';
import { feedContract } from './contract/feed.ts';
import { historyContract } from './contract/history.ts';
import { holdContract } from './contract/holds.ts';
import { idempotencyContract } from './contract/idempotency.ts';
import { listContract } from './contract/lists.ts';
import { manyCyclesContract } from './contract/many-cycles.ts';
import { overviewContract } from './contract/overview.ts';
import { pageContract } from './contract/pages.ts';
import { planReadContract } from './contract/plan-reads.ts';
import { planContract } from './contract/plans.ts';
import { refundContract } from './contract/refunds.ts';
import { statesAtContract } from './contract/states-at.ts';
import { stopContract } from './contract/stops.ts';
import { timeContract } from './contract/time.ts';
import { writeContract } from './contract/writes.ts';
import { problemsOf } from './temporary-ledger.ts';
import { type NewLedger, TestLedger } from './test-ledger.ts';

export type ContractLedger = TestLedger & { readonly account: number; readonly other: number };

export interface Contract {
  it(sentence: string, work: (ledger: ContractLedger) => Promise<void>): void;
  itInTime(sentence: string, work: (ledger: ContractLedger) => Promise<void>): void;
  itOnRealClock(sentence: string, work: (ledger: ContractLedger) => Promise<void>): void;
}

const TEST_MS_MAX = 60_000;

/** Every `AUDITED_EARLY_EVERY`th test also audits the ledger before the totals are brought up to date. */
const AUDITED_EARLY_EVERY = effort(10, 1);

export interface ContractOptions {
  /** `real` skips the tests that move the clock; `movable` skips the tests that need a real clock. */
  readonly clock: 'movable' | 'real';
  /** How many tests run at once. The default is 1. */
  readonly concurrency?: number;
  /**
   * `npm test` runs every `oneIn`th test (by default, every test), all tests in `always`, and all tests that depend on
   * the clock. Set a number above 1 only if all tests run on another variant of the same store.
   */
  readonly oneIn?: number;
  readonly always?: readonly string[];
}

export function storeContract(
  name: string,
  make: NewLedger,
  { clock, concurrency = 1, oneIn = 1, always = [] }: ContractOptions,
): void {
  let started = 0;
  const run: Contract['it'] = (sentence, work) => {
    const isAuditedEarly = started++ % AUDITED_EARLY_EVERY === 0;
    test(sentence, { timeout: TEST_MS_MAX }, (t) => withLedger(t, make, work, isAuditedEarly));
  };
  const every = effort(oneIn, 1);
  const missing = new Set(always);
  let tests = 0;
  const it: Contract['it'] = (sentence, work) => {
    const isWanted = missing.delete(sentence);
    if (isWanted || tests++ % every === 0) run(sentence, work);
  };
  const leftOut = () => {};
  const isReal = clock === 'real';
  const contract: Contract = { it, itInTime: isReal ? leftOut : run, itOnRealClock: isReal ? run : leftOut };
  describe(name, { concurrency }, () => {
    describe('writes', () => writeContract(contract));
    describe('many cycles', () => manyCyclesContract(contract));
    describe('stops', () => stopContract(contract));
    describe('holds', () => holdContract(contract));
    describe('refunds', () => refundContract(contract));
    describe('time', () => timeContract(contract));
    describe('plans', () => planContract(contract));
    describe('reads of plans', () => planReadContract(contract));
    describe('pages of transactions', () => pageContract(contract));
    describe('lists of transactions during renewals', () => listContract(contract));
    describe('lists with cursors', () => cursorContract(contract));
    describe('idempotency records', () => idempotencyContract(contract));
    describe('feed', () => feedContract(contract));
    describe('events', () => eventContract(contract));
    describe('time-driven events', () => eventTimeContract(contract));
    describe('pages of events', () => eventPageContract(contract));
    describe('history', () => historyContract(contract));
    describe('states at an instant', () => statesAtContract(contract));
    describe('console reads', () => consoleReadContract(contract));
    describe('lists of end users', () => endUserListContract(contract));
    describe('overview', () => overviewContract(contract));
    describe('digests', () => digestContract(contract));
    describe('API keys', () => apiKeyContract(contract));
    assert.deepEqual([...missing], [], 'each test in `always` exists');
  });
}

async function withLedger(
  t: TestContext,
  make: NewLedger,
  work: (ledger: ContractLedger) => Promise<void>,
  isAuditedEarly: boolean,
): Promise<void> {
  const opened = await TestLedger.open(make);
  t.after(async () => {
    await opened.close();
    await opened.remove();
  });
  const accounts = { account: await accountNamed('first', opened), other: await accountNamed('second', opened) };
  const ledger: ContractLedger = Object.assign(opened, accounts);
  await work(ledger);
  if (isAuditedEarly)
    assert.deepEqual(problemsOf(await ledger.audit()), [], 'the audit finds nothing wrong after the test');
  await ledger.consumeFeed();
  assert.deepEqual(
    problemsOf(await ledger.audit()),
    [],
    'the audit finds nothing wrong after the totals have caught up',
  );
}

async function accountNamed(accountName: string, { keys }: TestLedger): Promise<number> {
  const secret = apiKeySecret('write', randomBytes(SECRET_BYTES));
  return (await keys.create({ accountName, scope: 'write', secret })).account;
}
