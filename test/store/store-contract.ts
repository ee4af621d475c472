// What every store must do, whatever it is made of. A store runs these tests by saying how a ledger of its kind is
// opened. Each test gets a ledger of its own, and after each the ledger is audited.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { apiKeySecret, SECRET_BYTES } from '../../src/accounts/api-key.ts';
import type { Finding } from '../../src/ledger/audit.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Store } from '../../src/store/store.ts';
import { accountReadsContract } from './contract/account-reads.ts';
import { answerContract } from './contract/answers.ts';
import { apiKeyContract } from './contract/api-keys.ts';
import { chainContract } from './contract/chains.ts';
import { listContract } from './contract/lists.ts';
import { overviewContract } from './contract/overview.ts';
import { pageContract } from './contract/pages.ts';
import { timeContract } from './contract/time.ts';
import { writeContract } from './contract/writes.ts';
import { auditOf, NOON } from './temporary-ledger.ts';

export interface OpenedLedger {
  readonly store: Store;
  /** Opens the same ledger again, after its store was closed. */
  reopen(): Promise<Store>;
  remove(): Promise<void>;
}

/** Makes a new ledger. A store that cannot be told the time ignores `wall`. */
export type OpenLedger = (options: { wall: () => Instant }) => Promise<OpenedLedger>;

/** One ledger, as a test of the contract sees it. */
export interface Ledger {
  /** Where the machine's clock stands. */
  wall: Instant;
  store: Store;
  /** Two accounts. */
  readonly account: number;
  readonly other: number;
  /** Closes the store, and opens another on the same ledger. */
  reopen(): Promise<void>;
}

/** The two ways to add a test to the contract. */
export interface Contract {
  it(sentence: string, work: (ledger: Ledger) => Promise<void>): void;
  /** For what needs the clock to be moved. */
  itInTime(sentence: string, work: (ledger: Ledger) => Promise<void>): void;
}

/** A store that never answers fails its test, and does not hold up the rest. */
const TEST_MS_MAX = 60_000;

/**
 * @param clock with `real` there are no tests that move it
 * @param concurrency how many of the tests run at once, where a store spends its time waiting
 */
export function storeContract(name: string, open: OpenLedger, clock: 'movable' | 'real', concurrency = 1): void {
  const it: Contract['it'] = (sentence, work) =>
    void test(sentence, { timeout: TEST_MS_MAX }, (t) => withLedger(t, open, work));
  const contract: Contract = { it, itInTime: clock === 'movable' ? it : () => {} };
  describe(name, { concurrency }, () => {
    describe('writes', () => writeContract(contract));
    describe('time', () => timeContract(contract));
    describe('pages of transactions', () => pageContract(contract));
    describe('idempotency keys', () => answerContract(contract));
    describe('reads of an account', () => accountReadsContract(contract));
    describe('overview of an account', () => overviewContract(contract));
    describe('lists, as clients page through them', () => listContract(contract));
    describe('chains', () => chainContract(contract));
    describe('API keys', () => apiKeyContract(contract));
  });
}

async function withLedger(t: TestContext, open: OpenLedger, work: (ledger: Ledger) => Promise<void>): Promise<void> {
  const clock = { wall: NOON };
  const opened = await open({ wall: () => clock.wall });
  let { store } = opened;
  t.after(async () => {
    await store.close();
    await opened.remove();
  });
  const ledger: Ledger = Object.assign(clock, {
    store,
    account: await accountNamed('first', store),
    other: await accountNamed('second', store),
    async reopen() {
      await store.close();
      store = await opened.reopen();
      ledger.store = store;
    },
  });
  await work(ledger);
  assert.deepEqual(await auditOf(store), { findings: [], store: [] }, 'the ledger is whole afterwards');
  const broken: Finding[] = [];
  await store.prove([], (finding) => broken.push(finding));
  assert.deepEqual(broken, [], 'its chains are whole afterwards');
}

async function accountNamed(accountName: string, store: Store): Promise<number> {
  const secret = apiKeySecret('write', randomBytes(SECRET_BYTES));
  return (await store.apiKeys.create({ accountName, scope: 'write', secret })).account;
}
