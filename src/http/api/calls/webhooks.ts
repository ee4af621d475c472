// The part of the OpenAPI document that describes the requests to webhook endpoints. Webhooks use the same schemas as
// the list of events.

import { EVENT_TYPES } from '../../../store/event-log.ts';
import { EVENT_EXAMPLES } from './event-story.ts';
import { meaningOf } from './event-types.ts';

function header(name: string, description: string, type: 'string' | 'integer', example: unknown) {
  return { name, in: 'header', required: true, description, schema: { type }, example } as const;
}

const HEADERS = [
  header(
    'webhook-id',
    'The `id` of the event. Every attempt to deliver the event has the same ID, so that you can ignore events that you have already processed.',
    'string',
    EVENT_EXAMPLES['credits.added']?.id,
  ),
  header('webhook-timestamp', 'When Scrip sent this request, as Unix time in seconds.', 'integer', 1_795_161_602),
  header(
    'webhook-signature',
    "One or more signatures, separated by spaces. Each signature is `v1,` followed by an HMAC-SHA256 in Base64. The HMAC covers `webhook-id`, `webhook-timestamp` and the body, joined by `.`. The HMAC key is the endpoint's secret without the prefix `whsec_`, decoded from Base64. One valid signature is enough: for 24 hours after you rotate the secret, Scrip signs with both the previous and the new secret.",
    'string',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
];

const summaries: Readonly<Record<string, string>> = {
  ...Object.fromEntries(EVENT_TYPES.map((type) => [type, meaningOf(type)])),
  'webhook.test': 'A test event was requested.',
};

const examples = Object.fromEntries(
  Object.entries(EVENT_EXAMPLES).map(([type, value]) => [type, { summary: summaries[type] ?? type, value }]),
);

export const WEBHOOKS = {
  event: {
    post: {
      operationId: 'receiveEvent',
      tags: ['Webhooks'],
      summary: 'Receive an event',
      description:
        'Scrip sends each event to all webhook endpoints that the account has set up for events of this type. The requests follow [Standard Webhooks](https://www.standardwebhooks.com). Verify the signature before you parse the body, because the signature covers the exact bytes of the body. The events of an end user arrive in the order in which they happened. An event can arrive more than once.',
      parameters: HEADERS,
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              anyOf: [{ $ref: '#/components/schemas/Event' }, { $ref: '#/components/schemas/WebhookTestEvent' }],
            },
            examples,
          },
        },
      },
      responses: {
        '2XX': { description: 'The event was received. Scrip does not retry the delivery.' },
        default: {
          description:
            'The delivery failed. Scrip retries a failed delivery up to nine times over about three days. If the status is 410, Scrip pauses the endpoint immediately.',
        },
      },
      security: [],
    },
  },
};
