// Sample data for the pages of an account in use and of a new account.

import { KEY_NAME_CHARACTERS_MAX } from '../../src/accounts/api-key.ts';
import type { Page } from '../../src/console/layout.ts';
import type { AccountView } from '../../src/console/pages/account.ts';
import type { ApiKeysView } from '../../src/console/pages/api-keys.ts';
import type { MembersView } from '../../src/console/pages/members.ts';
import type { OverviewView } from '../../src/console/pages/overview.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { OverviewDay } from '../../src/store/console-store.ts';
import { END_USER, HISTORY, MEMBER, NOW, RICH_END_USER } from './sample-end-users.ts';

export const VIEWER: NonNullable<Page['viewer']> = {
  userId: '3d5a9c1e-7b24-4f60-8a1d-2c6e9f0b4a71',
  email: 'ada@lumen.example',
  accountName: 'Lumen Pictures',
  role: 'owner',
};

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
    isStoringDue: false,
    ...change,
  };
}

export const RICH_OVERVIEW: OverviewView = overviewView({
  outstanding: 9_007_199_254_740_991_000n,
  counts: { endUsers: 1_000_000, withCredits: 894_976 },
  recent: RICH_END_USER.history.slice(0, 8).map((activity) => ({ ...activity, endUser: END_USER })),
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
      {
        id: 'a1'.repeat(32),
        role: 'member',
        inviter: VIEWER.email,
        createdAt: NOW - 2 * DAY_MS,
        expiresAt: NOW + 5 * DAY_MS,
      },
      { id: 'b2'.repeat(32), role: 'owner', inviter: null, createdAt: NOW - DAY_MS, expiresAt: NOW + 6 * DAY_MS },
    ],
    newInvitationUrl: null,
    idempotencyKey: 'key-5',
    error: null,
    ...change,
  };
}

const LONG_EMAIL = `${'w'.repeat(240)}@lumen.example`;

/** One of these members has an email address of the maximum length. */
export const LONG_MEMBERS: MembersView = membersView({
  members: membersView().members.map((member, index) => (index === 0 ? member : { ...member, email: LONG_EMAIL })),
});

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

/** One of these API keys has a name of the maximum length and was created by a member with a long email address. */
export const LONG_KEYS: ApiKeysView = apiKeysView({
  keys: apiKeysView().keys.map((key, index) => {
    const long = {
      name: 'W'.repeat(KEY_NAME_CHARACTERS_MAX),
      createdBy: { kind: 'member', email: LONG_EMAIL },
    } as const;
    return index === 0 ? { ...key, ...long } : key;
  }),
});

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
