// Sample data for the pages of webhooks and thresholds.

import type { EndpointView } from '../../src/console/pages/webhooks/endpoint.ts';
import type { EndpointsView } from '../../src/console/pages/webhooks/endpoints.ts';
import type { ThresholdsView } from '../../src/console/pages/webhooks/thresholds.ts';
import type { Delivery } from '../../src/events/webhooks/deliveries.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import { MEMBER, NOW } from './sample-end-users.ts';

export const SIGNING_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const URL = 'https://api.lumen.example/webhooks/scrip';
const LONG_URL = `https://events.internal.lumen.example/receivers/credits/${'eu-central-1/'.repeat(6)}scrip?tenant=lumen-pictures`;
const PAUSED = {
  at: NOW - 3 * HOUR_MS,
  because: 'All deliveries failed for about three days. The last error: The endpoint responded with status 503.',
};

export function endpointsView(change: Partial<EndpointsView> = {}): EndpointsView {
  return {
    endpoints: [
      { id: 1, url: URL, types: [], paused: null, pending: 0, lastDeliveredAt: NOW - 41_000 },
      {
        id: 2,
        url: LONG_URL,
        types: ['balance.low'],
        paused: PAUSED,
        pending: 12_345,
        lastDeliveredAt: NOW - 4 * DAY_MS,
      },
      {
        id: 3,
        url: 'http://127.0.0.1:4000/',
        types: ['balance.low', 'balance.exhausted'],
        paused: null,
        pending: 1,
        lastDeliveredAt: null,
      },
    ],
    state: null,
    idempotencyKey: 'key-7',
    ...change,
  };
}

const BODY = `{"id":"evt_5d0e6f0c1f7b4a2f9c3b8e7a6d5c4b3a","type":"balance.low","timestamp":"2026-11-20T14:05:12.854Z","data":{"end_user_id":"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23","previous_balance":100,"threshold":"20%","balance":15}}`;

const DELIVERED: Delivery = {
  id: 'dlv_0017637339129910123456789abcdef',
  eventId: 'evt_5d0e6f0c1f7b4a2f9c3b8e7a6d5c4b3a',
  type: 'balance.low',
  body: BODY,
  attempt: 2,
  at: NOW - 41_000,
  durationMs: 112,
  status: 200,
  error: null,
  answer: '',
};
const FAILED: Delivery = {
  ...DELIVERED,
  id: 'dlv_0017637338789910123456789abcdef',
  attempt: 1,
  at: NOW - 75_000,
  durationMs: 1_204,
  status: 503,
  error: 'The endpoint responded with status 503.',
  answer: '<html><body>Service <b>unavailable</b></body></html>',
};
const UNREACHABLE: Delivery = {
  ...FAILED,
  id: 'dlv_0017637336789910123456789abcdef',
  type: 'credits.subtracted',
  at: NOW - 275_000,
  durationMs: 15_000,
  status: null,
  error: 'There was no response within 15 seconds.',
  answer: '',
};

export const DELIVERIES = { delivered: DELIVERED, failed: FAILED, unreachable: UNREACHABLE };

export function endpointView(change: Partial<EndpointView> = {}): EndpointView {
  return {
    endpoint: {
      id: 1,
      url: URL,
      types: [],
      createdAt: NOW - 40 * DAY_MS,
      createdBy: MEMBER,
      paused: null,
      previousSecretUntil: null,
    },
    summary: { pending: 0, oldestPendingAt: null, lastDeliveredAt: NOW - 41_000 },
    deliveries: [DELIVERED, FAILED, UNREACHABLE],
    isFirstPage: true,
    older: UNREACHABLE.id,
    refused: null,
    ...change,
  };
}

export const PAUSED_ENDPOINT: EndpointView = endpointView({
  endpoint: {
    ...endpointView().endpoint,
    id: 2,
    url: LONG_URL,
    types: ['balance.low', 'balance.exhausted', 'credits.expiring'],
    createdBy: { kind: 'operator' },
    paused: PAUSED,
    previousSecretUntil: NOW + 20 * HOUR_MS,
  },
  summary: { pending: 12_345, oldestPendingAt: NOW - 3 * DAY_MS, lastDeliveredAt: null },
  deliveries: [UNREACHABLE],
  isFirstPage: false,
  older: null,
  refused: {
    form: 'resend',
    state: {
      values: { from: '2026-11-20T08:00', to: '' },
      errors: { to: 'Enter a date and a time, such as 2026-12-20 08:00.' },
    },
  },
});

export const NEW_ENDPOINT: EndpointView = endpointView({
  summary: { pending: 0, oldestPendingAt: null, lastDeliveredAt: null },
  deliveries: [],
  older: null,
  refused: {
    form: 'types',
    state: { values: { types: 'balance.low' }, errors: { types: 'Choose event types from this list.' } },
  },
});

export function thresholdsView(change: Partial<ThresholdsView> = {}): ThresholdsView {
  return {
    thresholds: [
      { below: '20%', createdAt: NOW - 12 * DAY_MS },
      { below: '5000', createdAt: NOW - 2 * DAY_MS },
    ],
    expiringDays: 7,
    refused: null,
    ...change,
  };
}
