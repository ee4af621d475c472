// Serves every page of the console with sample data and Scrip's Content-Security-Policy.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ASSET_CACHING, ASSET_FILES } from '../../src/console/assets/asset-files.ts';
import { CONTENT_SECURITY_POLICY, errorPage } from '../../src/console/layout.ts';
import { accountPage } from '../../src/console/pages/account.ts';
import { apiKeysPage, keyCreatedPage, revokeKeyPage } from '../../src/console/pages/api-keys.ts';
import {
  addressTakenPage,
  cannotJoinPage,
  confirmEmailPage,
  forgotPasswordPage,
  httpsRequiredPage,
  invalidLinkPage,
  joinPage,
  resetPasswordPage,
  signInPage,
  signUpClosedPage,
  signUpPage,
} from '../../src/console/pages/credentials.ts';
import { endUserPage } from '../../src/console/pages/end-user/end-user.ts';
import { planChangePage } from '../../src/console/pages/end-user/plan-change.ts';
import { transactionPage } from '../../src/console/pages/end-user/transaction.ts';
import { endUsersPage } from '../../src/console/pages/end-users.ts';
import { membersPage, removeMemberPage } from '../../src/console/pages/members.ts';
import { overviewPage } from '../../src/console/pages/overview.ts';
import { deliveryPage } from '../../src/console/pages/webhooks/delivery.ts';
import { endpointPage, removeEndpointPage, rotateSecretPage } from '../../src/console/pages/webhooks/endpoint.ts';
import { endpointSecretPage, endpointsPage } from '../../src/console/pages/webhooks/endpoints.ts';
import { thresholdsPage } from '../../src/console/pages/webhooks/thresholds.ts';
import { formText } from '../../src/http/problems.ts';
import { endUserView, NEW_END_USER, NOW, RICH_END_USER, TRANSACTIONS } from './sample-end-users.ts';
import { PLAN_CHANGES, PLANNED_END_USER } from './sample-plans.ts';
import {
  accountView,
  apiKeysView,
  EMPTY_OVERVIEW,
  END_USERS,
  LONG_KEYS,
  LONG_MEMBERS,
  membersView,
  overviewView,
  RICH_OVERVIEW,
  SECRET,
  VIEWER,
} from './sample-views.ts';
import {
  DELIVERIES,
  endpointsView,
  endpointView,
  NEW_ENDPOINT,
  PAUSED_ENDPOINT,
  SIGNING_SECRET,
  thresholdsView,
} from './sample-webhooks.ts';

const POLICY = Object.entries(CONTENT_SECURITY_POLICY)
  .map(([name, sources]) => `${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${sources.join(' ')}`)
  .join('; ');
const CONTEXT = { viewer: VIEWER, notice: null };
const API = 'https://credits.lumen.example';
const FILTER = { list: 'activity', search: '', atMost: '100', days: '7' } as const;
const LIST = {
  filter: FILTER,
  counts: { endUsers: 21_345, withCredits: 8_120 },
  error: null,
  page: { asOf: NOW, endUsers: END_USERS, next: 'later' },
  isStoringDue: false,
  isFirstPage: true,
};
const LAST = { asOf: NOW, endUsers: END_USERS.slice(0, 3), next: null };
const NO_ONE = { ...LAST, endUsers: [] };
const REFUSED = {
  adjustment: 'add',
  state: {
    values: { amount: '1,000', validity: '0', note: 'Ticket 4711 <b>' },
    errors: { amount: 'Enter digits only, without separators: 1000.', validity: 'Enter at least 1 day.' },
  },
} as const;
const CHANGE_REFUSED = {
  adjustment: 'start-cycle',
  state: {
    values: { amount: '0', validity: '121', unit: 'months', on_active: '', note: '' },
    errors: { amount: 'Enter at least 1.', validity: 'Enter at most 120 months.', on_active: 'Choose a start.' },
  },
} as const;

const TOKEN = 'Yk9uZV9vZl9vdXJfc2FtcGxlX3Rva2Vuc19pbl9oZXJl';
const INVITATION = { account: 2, accountName: 'Lumen Games', role: 'member' } as const;
const WRONG_PASSWORD = { values: { email: 'ada@lumen.example' }, errors: { form: 'Wrong email or password.' } };

const [FIRST_KEY] = apiKeysView().keys;
const [FIRST_MEMBER] = membersView().members;
if (!FIRST_KEY || !FIRST_MEMBER) throw new Error('sample keys and members are missing');

export const SAMPLE_PAGES: Readonly<Record<string, string>> = {
  overview: overviewPage(overviewView(), VIEWER),
  'overview-year': overviewPage(overviewView({ period: '12m' }), VIEWER),
  'overview-of-key': overviewPage(
    overviewView({ by: { actor: 'key:3', label: 'Production backend (scrip_write_Ab3dE6…)' } }),
    VIEWER,
  ),
  'overview-rich': overviewPage(RICH_OVERVIEW, VIEWER),
  'overview-empty': overviewPage(EMPTY_OVERVIEW, VIEWER),
  'end-users': endUsersPage(LIST, VIEWER),
  'end-users-last': endUsersPage({ ...LIST, isFirstPage: false, page: LAST }, VIEWER),
  'end-users-low': endUsersPage({ ...LIST, filter: { ...FILTER, list: 'low-balance' } }, VIEWER),
  'end-users-bad-limit': endUsersPage(
    { ...LIST, filter: { ...FILTER, list: 'expiry', days: '0' }, error: 'Enter at least 1 day.', page: null },
    VIEWER,
  ),
  'end-users-none': endUsersPage({ ...LIST, counts: { endUsers: 0, withCredits: 0 }, page: NO_ONE }, VIEWER),
  'end-users-found': endUsersPage({ ...LIST, filter: { ...FILTER, search: '5f2b' }, page: LAST }, VIEWER),
  'end-users-not-found': endUsersPage({ ...LIST, filter: { ...FILTER, search: 'abc' }, page: NO_ONE }, VIEWER),
  'end-users-bad-search': endUsersPage(
    {
      ...LIST,
      filter: { ...FILTER, search: 'bob' },
      error: 'Use only the digits 0–9, the letters a–f and hyphens.',
      page: null,
    },
    VIEWER,
  ),
  'end-user': endUserPage(endUserView(), { ...CONTEXT, notice: 'Credits added.' }),
  'end-user-refused': endUserPage(endUserView({ forms: { ...endUserView().forms, refused: REFUSED } }), CONTEXT),
  'end-user-change-refused': endUserPage(
    endUserView({ forms: { ...endUserView().forms, refused: CHANGE_REFUSED } }),
    CONTEXT,
  ),
  'end-user-plan': endUserPage(PLANNED_END_USER, CONTEXT),
  'end-user-older': endUserPage(endUserView({ isFirstPage: false, balanceOverTime: null, older: null }), CONTEXT),
  'end-user-filtered': endUserPage(
    endUserView({
      filter: { kind: 'add', note: 'Ticket', from: '2026-11-01', to: '' },
      filterErrors: { to: 'Enter a date, such as 2026-11-20.' },
    }),
    CONTEXT,
  ),
  'end-user-rich': endUserPage(RICH_END_USER, CONTEXT),
  'end-user-new': endUserPage(NEW_END_USER, CONTEXT),
  ...Object.fromEntries(
    Object.entries(PLAN_CHANGES).map(([name, view]) => [`plan-change-${name}`, planChangePage(view, VIEWER)]),
  ),
  ...Object.fromEntries(
    Object.entries(TRANSACTIONS).map(([name, view]) => [`transaction-${name}`, transactionPage(view, VIEWER)]),
  ),
  'api-keys': apiKeysPage(apiKeysView(), CONTEXT),
  'api-keys-refused': apiKeysPage(
    apiKeysView({ state: { values: { name: '', scope: 'read' }, errors: { name: 'Enter a name.' } } }),
    CONTEXT,
  ),
  'api-keys-long': apiKeysPage(LONG_KEYS, CONTEXT),
  'api-keys-none': apiKeysPage(apiKeysView({ keys: [] }), CONTEXT),
  'key-created': keyCreatedPage({ name: 'Production backend', scope: 'write', secret: SECRET, apiUrl: API }, VIEWER),
  'revoke-key': revokeKeyPage(FIRST_KEY, NOW, VIEWER),
  webhooks: endpointsPage(endpointsView(), { ...CONTEXT, notice: 'Endpoint removed.' }),
  'webhooks-none': endpointsPage(endpointsView({ endpoints: [] }), CONTEXT),
  'webhooks-refused': endpointsPage(
    endpointsView({
      state: {
        values: { url: 'http://lumen.example', types: 'balance.low,hold.lapsed' },
        errors: { url: 'The URL must begin with https://.' },
      },
    }),
    CONTEXT,
  ),
  'webhook-added': endpointSecretPage(
    { id: 1, url: endpointView().endpoint.url, secret: SIGNING_SECRET, previousSecretUntil: null },
    VIEWER,
  ),
  'webhook-rotated': endpointSecretPage(
    { id: 1, url: endpointView().endpoint.url, secret: SIGNING_SECRET, previousSecretUntil: NOW },
    VIEWER,
  ),
  webhook: endpointPage(endpointView(), CONTEXT),
  'webhook-paused': endpointPage(PAUSED_ENDPOINT, CONTEXT),
  'webhook-new': endpointPage(NEW_ENDPOINT, { ...CONTEXT, notice: 'Event types saved.' }),
  'webhook-rotate': rotateSecretPage(endpointView().endpoint, 'key-8', VIEWER),
  'webhook-remove': removeEndpointPage(PAUSED_ENDPOINT.endpoint, 12_345, VIEWER),
  ...Object.fromEntries(
    Object.entries(DELIVERIES).map(([name, delivery]) => [
      `delivery-${name}`,
      deliveryPage(PAUSED_ENDPOINT.endpoint, delivery, VIEWER),
    ]),
  ),
  thresholds: thresholdsPage(thresholdsView(), CONTEXT),
  'thresholds-none': thresholdsPage(thresholdsView({ thresholds: [] }), { ...CONTEXT, notice: 'Threshold removed.' }),
  'thresholds-refused': thresholdsPage(
    thresholdsView({
      refused: {
        form: 'below',
        state: {
          values: { below: '20,5' },
          errors: { below: 'Enter a number of credits, such as 20, or a percentage from 1% to 100%.' },
        },
      },
    }),
    CONTEXT,
  ),
  members: membersPage(membersView(), CONTEXT),
  'members-long': membersPage(LONG_MEMBERS, CONTEXT),
  'members-invited': membersPage(membersView({ newInvitationUrl: `${API}/console/join/${TOKEN}` }), CONTEXT),
  'remove-member': removeMemberPage(FIRST_MEMBER, VIEWER),
  account: accountPage(accountView(), { ...CONTEXT, notice: 'Account renamed.' }),
  'account-refused': accountPage(
    accountView({
      theme: 'dark',
      refused: { form: 'password', state: { values: {}, errors: { current: 'Wrong password.' } } },
    }),
    { ...CONTEXT, viewer: { ...VIEWER, role: 'member' } },
  ),
  'sign-in': signInPage({ state: null, notice: 'You have signed out.', isSignUpOpen: true, hasMail: false }),
  'sign-in-refused': signInPage({ state: WRONG_PASSWORD, notice: null, isSignUpOpen: false, hasMail: true }),
  'https-required': httpsRequiredPage(),
  'sign-up': signUpPage(null, null),
  'sign-up-first': signUpPage('default', null),
  'sign-up-refused': signUpPage(null, {
    values: { email: 'ada', name: '' },
    errors: { email: 'Enter an email address.' },
  }),
  'sign-up-closed': signUpClosedPage(false),
  'sign-up-by-link': signUpClosedPage(true),
  join: joinPage({ token: TOKEN, ...INVITATION, state: null }),
  'cannot-join': cannotJoinPage(INVITATION, VIEWER, false),
  'joined-already': cannotJoinPage(INVITATION, VIEWER, true),
  'address-taken': addressTakenPage(),
  'forgot-password': forgotPasswordPage(null),
  'reset-password': resetPasswordPage({ token: TOKEN, email: VIEWER.email, state: null }),
  'confirm-email': confirmEmailPage({ token: TOKEN, email: VIEWER.email, state: null }),
  'invalid-link': invalidLinkPage(),
  error: errorPage({ title: 'Page not found', detail: 'Check the web address.' }, VIEWER),
  'error-signed-out': errorPage(
    { title: 'Temporarily unavailable', detail: 'Try again in a moment.', requestId: 'mi7r-1' },
    null,
  ),
  'error-with-form': errorPage(
    {
      title: 'Temporarily unavailable',
      detail: formText('OutcomeUnknown'),
      requestId: 'mi7r-1',
      form: { action: '/console/end-users/1/add', fields: [['amount', '100']] },
    },
    VIEWER,
  ),
};

export interface SampleServer {
  readonly url: string;
  close(): void;
}

export async function serveSamplePages(): Promise<SampleServer> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://sample').pathname;
    const asset = ASSET_FILES.find(({ url }) => url === path);
    const html = SAMPLE_PAGES[path.slice(1)];
    if (asset) {
      response.writeHead(200, { 'content-type': asset.contentType, 'cache-control': ASSET_CACHING }).end(asset.body);
    } else if (html !== undefined) {
      response
        .writeHead(200, {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
        })
        .end(html);
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
