// Sample data for the pages of an end user. The ledger computes the data from commands at fixed times, so the pages
// look the same in every run.

import assert from 'node:assert/strict';
import type { EndUserView } from '../../src/console/pages/end-user/end-user.ts';
import type { TransactionView } from '../../src/console/pages/end-user/transaction.ts';
import type { ActorView } from '../../src/console/pages/lists.ts';
import { readBalanceOverTime } from '../../src/console/routes/end-user/balance-over-time.ts';
import { readHistory } from '../../src/console/routes/end-user/history.ts';
import { readHolds } from '../../src/console/routes/end-user/holds.ts';
import { activeBalance, cyclesAt } from '../../src/ledger/balance.ts';
import type { EndUserKey } from '../../src/ledger/command.ts';
import { heldAt } from '../../src/ledger/hold.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { Actor, PostingKind } from '../../src/ledger/posting.ts';
import { type CommandWithout, MemoryStore } from './memory-store.ts';

export const NOW = Date.UTC(2026, 10, 20, 14, 5, 31, 204);
export const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
export const USER = { account: 1, endUser: END_USER };

const KEY: ActorView = { kind: 'api-key', name: 'Production backend', hint: 'scrip_write_Ab3dE6…' };
export const MEMBER: ActorView = { kind: 'member', email: 'ada@lumen.example' };

function nameOf(actor: Actor): ActorView {
  if (actor === 'key:3') return KEY;
  return actor === 'user:u1' ? MEMBER : { kind: 'time' };
}

export class SampleLedger extends MemoryStore {
  run(daysAgo: number, command: CommandWithout<keyof EndUserKey>): string {
    this.now = NOW - Math.round(daysAgo * DAY_MS);
    return this.transact({ ...USER, ...command });
  }
}

export const byKey = { actor: 'key:3' };
export const byMember = { actor: 'user:u1' };

const ledger = new SampleLedger(NOW);
ledger.run(39, { ...byKey, kind: 'start-cycle', amount: 1_000, validityDays: 31, onActive: 'refuse' });
ledger.run(28, { ...byKey, kind: 'add', amount: 250, validityDays: 14 });
ledger.run(22, { ...byKey, kind: 'subtract', amount: 400 });
ledger.run(20, { ...byKey, kind: 'add', amount: 2_000, validityDays: 40 });
const spent = ledger.run(15, { ...byKey, kind: 'subtract', amount: 870 });
ledger.run(11, { ...byKey, kind: 'subtract', amount: 300 });
const renders = ledger.run(3.2, { ...byKey, kind: 'subtract', amount: 240, note: 'Renders 4700 to 4711' });
const apology = 'The export of 17 November failed twice; with our apologies. Ticket 4711.';
ledger.run(2.4, { ...byMember, kind: 'add', amount: 50, validityDays: 7, note: apology });
ledger.run(1.5, { ...byKey, kind: 'hold', amount: 10, expiresInSeconds: 900 });
ledger.run(1.1, { ...byMember, kind: 'refund', transactionId: renders, amount: 40, validityDays: null });
const goodwill = { transactionId: spent, amount: 30, validityDays: null, note: 'Ticket 4720' };
ledger.run(0.7, { ...byMember, kind: 'refund', ...goodwill });
const captured = ledger.run(0.4, { ...byKey, kind: 'hold', amount: 40, expiresInSeconds: 3_600, note: 'Render 8790' });
ledger.run(0.39, { ...byKey, kind: 'capture', holdId: captured, amount: 31 });
ledger.run(0.1, { ...byKey, kind: 'subtract', amount: 12 });
const open = ledger.run(0.004, { ...byKey, kind: 'hold', amount: 60, expiresInSeconds: 900, note: 'Render 8812' });

const rich = new SampleLedger(NOW);
const many = 9_007_199_254_738_000;
rich.run(349, { ...byKey, kind: 'start-cycle', amount: 1_000, validityDays: 31, onActive: 'refuse' });
const long = 'A note that says at some length why so many credits were added.';
rich.run(5, { ...byMember, kind: 'add', amount: many, validityDays: 90, note: long });
const drained = rich.run(0.1, { ...byKey, kind: 'subtract', amount: many - 6_000 });
const most = rich.run(0.02, { ...byKey, kind: 'hold', amount: 6_500, expiresInSeconds: 1_000_000 });
rich.run(0.01, { ...byKey, kind: 'capture', holdId: most, amount: 6_100 });
rich.run(0.009, { ...byMember, kind: 'refund', transactionId: drained, amount: many - 7_000, validityDays: null });
rich.run(0.008, { ...byKey, kind: 'hold', amount: many - 9_000, expiresInSeconds: 2_592_000, note: long });

const IDEMPOTENCY_KEYS = { add: 'key-1', subtract: 'key-2', 'start-cycle': 'key-3', 'stop-cycle': 'key-4' };

export async function viewOf(of: SampleLedger): Promise<EndUserView> {
  of.now = NOW;
  const loaded = await of.load(USER);
  const cycles = cyclesAt(loaded.state, NOW);
  const { transactions, terms, isStoringDue } = await readHistory(of, USER, null, {});
  return {
    endUser: END_USER,
    now: NOW,
    balance: activeBalance(cycles, NOW),
    held: heldAt(loaded.state.holds, NOW),
    cycles,
    ...(await readHolds(of, USER, loaded, nameOf)),
    balanceOverTime: await readBalanceOverTime(of, USER, loaded),
    isFirstPage: true,
    history: transactions.map((transaction) => ({ ...transaction, by: nameOf(transaction.actor) })),
    older: 'a cursor/of+the store',
    terms,
    isStoringDue,
    filter: { kind: '', note: '', from: '', to: '' },
    filterErrors: {},
    forms: { refused: null, idempotencyKeys: IDEMPOTENCY_KEYS },
  };
}

const SAMPLE = await viewOf(ledger);
export const HISTORY = SAMPLE.history;

export function endUserView(change: Partial<EndUserView> = {}): EndUserView {
  return { ...SAMPLE, ...change };
}

export const RICH_END_USER: EndUserView = { ...(await viewOf(rich)), older: null };

export const NEW_END_USER: EndUserView = { ...(await viewOf(new SampleLedger(NOW))), older: null };

function transactionView(id: string, change: Partial<TransactionView> = {}): TransactionView {
  const transaction = HISTORY.find((entry) => entry.id === id);
  assert(transaction, 'the transaction is on the first page');
  const { terms, endUser, now } = SAMPLE;
  const rest = { refunds: [], refundableExpired: 0, holdExpiresAt: null, state: null, idempotencyKey: 'key-6' };
  return { endUser, now, transaction, terms, ...rest, ...change };
}

function latest(kind: PostingKind): string {
  return HISTORY.find((entry) => entry.kind === kind)?.id ?? '';
}

const REFUSED = {
  values: { amount: '900', validity_days: '0', note: 'Ticket 4720' },
  errors: { amount: 'At most 840 credits can be refunded.', validity_days: 'Enter at least 1 day.' },
};
const CLOSED = { values: {}, errors: { form: 'This hold is no longer open. Nothing was changed.' } };

export const TRANSACTIONS: Readonly<Record<string, TransactionView>> = {
  subtraction: transactionView(renders, { refunds: HISTORY.filter(({ reference }) => reference === renders) }),
  'subtraction-refused': transactionView(spent, { refundableExpired: 840, state: REFUSED }),
  'open-hold': transactionView(open, { holdExpiresAt: NOW + 554_396 }),
  'closed-hold': transactionView(captured, { state: CLOSED }),
  capture: transactionView(latest('capture')),
  refund: transactionView(latest('refund')),
};
