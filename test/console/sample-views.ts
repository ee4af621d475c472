// Sample data for pages: an account in use and a new account. The data is fixed, so that pages look the same in every
// run.

import { balanceOverTime } from '../../src/console/charts/balance-chart.ts';
import type { Page } from '../../src/console/layout.ts';
import type { AccountView } from '../../src/console/pages/account.ts';
import type { ApiKeysView } from '../../src/console/pages/api-keys.ts';
import type { EndUserView, HistoryEntry } from '../../src/console/pages/end-user.ts';
import type { ActorView } from '../../src/console/pages/lists.ts';
import type { MembersView } from '../../src/console/pages/members.ts';
import type { OverviewView } from '../../src/console/pages/overview.ts';
import { activeBalance } from '../../src/ledger/balance.ts';
import { type Cycle, endOf } from '../../src/ledger/cycle.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { openingOf, type Posting, type PostingKind, postingTo } from '../../src/ledger/posting.ts';
import { EMPTY_STATE } from '../../src/ledger/state.ts';
import { renewalId, transactionId } from '../../src/ledger/transaction-id.ts';
import type { OverviewDay } from '../../src/store/console-store.ts';

export const NOW = Date.UTC(2026, 10, 20, 14, 5, 31, 204);
export const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
export const VIEWER: NonNullable<Page['viewer']> = {
  email: 'ada@lumen.example',
  accountName: 'Lumen Pictures',
  role: 'owner',
};

const KEY: ActorView = { kind: 'api-key', name: 'Production backend', hint: 'scrip_write_Ab3dE6…' };
const MEMBER: ActorView = { kind: 'member', email: 'ada@lumen.example' };
const RENEWAL: ActorView = { kind: 'renewal' };

export function idAt(at: number, sequence = 1): string {
  return transactionId({ at, sequence, tail: 'a1b2c3d4e5f6' });
}

function cycle(daysAgo: number, change: Partial<Cycle>): Cycle {
  const start = NOW - Math.round(daysAgo * DAY_MS);
  const validityDays = change.validityDays ?? 31;
  const period = change.period ?? 0;
  const id = idAt(start - period * validityDays * DAY_MS);
  return {
    id,
    period,
    type: 'one-time',
    status: 'active',
    amount: 100,
    remaining: 100,
    start,
    end: endOf(start, validityDays),
    validityDays,
    ...change,
  };
}

const TRIAL = cycle(28, { amount: 250, remaining: 35, validityDays: 14 });
/** The period before `MONTHLY`. */
const LAST_PERIOD = cycle(39, { type: 'recurring', amount: 1_000, remaining: 520 });
const MONTHLY = cycle(8, { type: 'recurring', amount: 1_000, remaining: 740, period: 1 });
const BUNDLE = cycle(20, { amount: 2_000, remaining: 1_285, validityDays: 40 });
const REWARD = cycle(2.4, { amount: 50, remaining: 50, validityDays: 7 });
const CYCLES = [LAST_PERIOD, TRIAL, BUNDLE, MONTHLY, REWARD];

function entry(
  daysAgo: number,
  kind: PostingKind,
  by: ActorView,
  parts: readonly [Cycle, number][],
  note?: string,
): HistoryEntry {
  const createdAt = NOW - Math.round(daysAgo * DAY_MS);
  const [[first]] = parts as [[Cycle, number]];
  return {
    id: kind === 'renew' ? renewalId(first.id, createdAt) : kind === 'subtract' ? idAt(createdAt, 7) : first.id,
    kind,
    by,
    createdAt,
    note: note ?? null,
    amount: parts.reduce((sum, [, amount]) => sum + amount, 0),
    expiresAt: Math.max(...parts.map(([touched]) => touched.end)),
    postings: parts.map(([{ id, period }, amount]) => ({ cycleId: id, period, amount })),
  };
}

export const HISTORY: readonly HistoryEntry[] = [
  entry(0.1, 'subtract', KEY, [[MONTHLY, -12]]),
  entry(0.4, 'subtract', KEY, [
    [BUNDLE, -15],
    [MONTHLY, -8],
  ]),
  entry(2.4, 'add', MEMBER, [[REWARD, 50]], 'The export of 17 November failed twice; with our apologies. Ticket 4711.'),
  entry(3.2, 'subtract', KEY, [[MONTHLY, -240]]),
  entry(8, 'renew', RENEWAL, [[MONTHLY, 1_000]]),
  entry(11, 'subtract', KEY, [[BUNDLE, -300]]),
  entry(15, 'subtract', KEY, [
    [LAST_PERIOD, -80],
    [TRIAL, -20],
    [BUNDLE, -400],
  ]),
  entry(20, 'add', KEY, [[BUNDLE, 2_000]]),
  entry(22, 'subtract', KEY, [
    [LAST_PERIOD, -400],
    [TRIAL, -195],
  ]),
  entry(28, 'add', KEY, [[TRIAL, 250]]),
  entry(39, 'start-cycle', KEY, [[LAST_PERIOD, 1_000]]),
];

/** Returns the postings of a history entry as a store would. */
function postingsOf({ id: transactionId, kind, createdAt, postings }: HistoryEntry): Posting[] {
  return postings.map(({ cycleId, period, amount }) => {
    const cycle = CYCLES.find((one) => one.id === cycleId && one.period === period) as Cycle;
    const entry = { transactionId, kind, actor: 'key:3', note: null };
    return kind === 'subtract' ? postingTo(cycle, amount, { ...entry, createdAt }) : openingOf(cycle, entry);
  });
}

/** A cycle of an end user with one huge grant and other, smaller ones. */
const HUGE = cycle(5, { amount: 9_007_199_254_738_000, remaining: 9_007_199_254_731_000, validityDays: 90 });
const LATE_PERIOD = cycle(8, { type: 'recurring', amount: 1_000, remaining: 740, period: 11 });
const RICH_HISTORY: readonly HistoryEntry[] = [
  entry(0.1, 'subtract', KEY, [
    [LATE_PERIOD, -260],
    [HUGE, -7_000],
  ]),
  entry(
    5,
    'add',
    MEMBER,
    [[HUGE, 9_007_199_254_738_000]],
    'A note that explains at some length why so many credits were added.',
  ),
  entry(8, 'renew', RENEWAL, [[LATE_PERIOD, 1_000]]),
];

const IDEMPOTENCY_KEYS = { add: 'key-1', subtract: 'key-2', 'start-cycle': 'key-3', 'stop-cycle': 'key-4' };

export function endUserView(change: Partial<EndUserView> = {}): EndUserView {
  const current = CYCLES.filter(({ end }) => end > NOW);
  const postings = HISTORY.toReversed().flatMap(postingsOf);
  return {
    endUser: END_USER,
    now: NOW,
    balance: activeBalance(current, NOW),
    cycles: current,
    balanceOverTime: balanceOverTime(
      { now: NOW, since: 0, state: EMPTY_STATE, postings },
      { from: NOW - 30 * DAY_MS, to: NOW + 31 * DAY_MS },
    ),
    isPastCut: false,
    isFirstPage: true,
    history: HISTORY,
    older: 'a cursor/of+the store',
    openings: new Map(CYCLES.map((cycle) => [cycle.id, cycle])),
    filter: { kind: '', from: '', to: '' },
    filterErrors: {},
    forms: { refused: null, idempotencyKeys: IDEMPOTENCY_KEYS },
    ...change,
  };
}

/** An end user with amounts near the largest possible ones. */
export const RICH_END_USER: EndUserView = endUserView({
  balance: LATE_PERIOD.remaining + HUGE.remaining,
  cycles: [LATE_PERIOD, HUGE],
  openings: new Map([LATE_PERIOD, HUGE].map((one) => [one.id, one])),
  history: RICH_HISTORY,
  older: null,
  balanceOverTime: {
    now: NOW,
    past: [
      { at: NOW - 30 * DAY_MS, balance: 310 },
      { at: NOW - 20 * DAY_MS, balance: 120 },
      { at: NOW - 8 * DAY_MS, balance: 1_000 },
      { at: NOW - 5 * DAY_MS, balance: 9_007_199_254_739_000 },
      { at: NOW - 0.1 * DAY_MS, balance: 9_007_199_254_731_740 },
    ],
    future: [
      { at: NOW, balance: 9_007_199_254_731_740 },
      { at: NOW + 23 * DAY_MS, balance: 9_007_199_254_732_000 },
    ],
    end: NOW + 31 * DAY_MS,
  },
});

/** An end user that never had credits. */
export const NEW_END_USER: EndUserView = endUserView({ balance: 0, cycles: [], history: [], older: null });

function flow(index: number): OverviewDay {
  const wave = 40 + 25 * Math.sin(index / 3) + (index % 7 < 5 ? 14 : -22) + index;
  const credits = (share: number) => BigInt(Math.round(wave * share * 137));
  return {
    day: Date.UTC(2026, 9, 22) + index * DAY_MS,
    added: credits(0.6),
    started: credits(index % 5 === 0 ? 0.5 : 0.12),
    spent: credits(0.86),
    expired: credits(index % 4 === 0 ? 0.28 : 0.07),
    renewed: credits(index % 6 === 2 ? 0.5 : 0.2),
    transactions: 100,
  };
}

const USERS = [
  END_USER,
  '91c4f0aa-7d52-4b0e-8a3d-2f6b1e9c5d70',
  'c07e55d1-40f8-4e9b-b1a2-77d9038a6e14',
  '0b8d2f63-1c9e-47aa-9f35-e4a7c6b2d810',
];

export function overviewView(change: Partial<OverviewView> = {}): OverviewView {
  return {
    asOf: Date.UTC(2026, 10, 20, 14),
    outstanding: 1_284_930n,
    counts: { endUsers: 21_345, withCredits: 8_120 },
    period: '30',
    by: null,
    keys: [{ actor: 'key:3', label: 'Production backend (scrip_write_Ab3dE6…)' }],
    members: [{ actor: 'user:u1', label: VIEWER.email }],
    actors: [],
    days: Array.from({ length: 30 }, (_, index) => flow(index)),
    recent: HISTORY.slice(0, 8).map((activity, index) => ({
      ...activity,
      endUser: USERS[index % USERS.length] as string,
    })),
    apiUrl: 'https://credits.lumen.example',
    ...change,
  };
}

/** An overview with one day on which a huge amount was granted. */
export const RICH_OVERVIEW: OverviewView = overviewView({
  outstanding: 9_007_199_254_740_991_000n,
  counts: { endUsers: 1_000_000, withCredits: 894_976 },
  days: Array.from({ length: 30 }, (_, index) =>
    index === 20 ? { ...flow(index), added: 9_007_199_254_740_991n } : flow(index),
  ),
});

export const EMPTY_OVERVIEW: OverviewView = overviewView({ outstanding: 0n, recent: [] });

export function membersView(change: Partial<MembersView> = {}): MembersView {
  return {
    viewerId: 'u1',
    members: [
      { userId: 'u1', email: VIEWER.email, role: 'owner', joinedAt: NOW - 90 * DAY_MS },
      { userId: 'u2', email: 'grace@lumen.example', role: 'member', joinedAt: NOW - 12 * DAY_MS },
    ],
    pendingInvitations: [
      { id: 'a1'.repeat(32), role: 'member', createdAt: NOW - 2 * DAY_MS, expiresAt: NOW + 5 * DAY_MS },
      { id: 'b2'.repeat(32), role: 'owner', createdAt: NOW - DAY_MS, expiresAt: NOW + 6 * DAY_MS },
    ],
    newInvitationUrl: null,
    error: null,
    ...change,
  };
}

export const END_USERS = Array.from({ length: 12 }, (_, index) => ({
  endUser:
    index < USERS.length
      ? (USERS[index] as string)
      : `${(index * 7_919_113).toString(16).padStart(8, '0')}-3a70-4d2e-9b61-0c8f4e7a1d23`,
  balance: index === 2 ? 9_007_199_254_740_991 : 12_345 - index * 1_013,
  expiresAt: index % 3 === 0 ? null : NOW + index * 29_977_123,
  latestActivity: NOW - index * 3_977_123,
}));

export const SECRET = 'scrip_write_0JhoLxlIEPIn3VrHtqRVZSm7MTkDmaUwH_03L8WQ';

export function apiKeysView(change: Partial<ApiKeysView> = {}): ApiKeysView {
  const key = {
    id: 3,
    name: 'Production backend',
    scope: 'write',
    hint: 'scrip_write_Ab3dE6…',
    createdBy: MEMBER,
    revokedBy: null,
    use: { granted: 181_200n, spent: 94_387n, transactions: 12_890 },
  } as const;
  return {
    now: NOW,
    keys: [
      { ...key, createdAt: NOW - 2 * DAY_MS, lastUsedAt: NOW - 1_000, revokedAt: null },
      {
        ...key,
        id: 2,
        name: 'Dashboards',
        scope: 'read',
        hint: 'scrip_read_k8Wq2Z…',
        createdAt: NOW - 40 * DAY_MS,
        lastUsedAt: NOW - 3 * DAY_MS,
        revokedAt: null,
      },
      {
        ...key,
        id: 4,
        name: 'Staging',
        hint: 'scrip_write_p0Lm7N…',
        createdAt: NOW - 1 * DAY_MS,
        lastUsedAt: null,
        revokedAt: null,
      },
      {
        ...key,
        id: 1,
        name: 'First prototype',
        hint: 'scrip_write_77xYfA…',
        createdAt: NOW - 90 * DAY_MS,
        lastUsedAt: NOW - 41 * DAY_MS,
        createdBy: { kind: 'operator' },
        revokedAt: NOW - 35 * DAY_MS,
        revokedBy: MEMBER,
        use: { granted: 0n, spent: 0n, transactions: 0 },
      },
    ],
    usedDays: 30,
    state: null,
    idempotencyKey: 'key-5',
    ...change,
  };
}

export function accountView(change: Partial<AccountView> = {}): AccountView {
  return {
    sessions: [
      {
        id: 'a1'.repeat(32),
        browser: 'Firefox on Linux',
        createdAt: NOW - DAY_MS,
        usedAt: NOW - 60_000,
        isCurrent: true,
      },
      {
        id: 'b2'.repeat(32),
        browser: 'Safari on an iPhone',
        createdAt: NOW - 3 * DAY_MS,
        usedAt: NOW - DAY_MS,
        isCurrent: false,
      },
    ],
    theme: 'system',
    refused: null,
    ...change,
  };
}
