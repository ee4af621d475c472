// The requests that Scrip sends to webhooks, for the OpenAPI document. Webhooks and the list of events share schemas.

import { EVENT_TYPES } from '../../../store/event-log.ts';
import { EVENT_EXAMPLES } from './event-story.ts';
import { meaningOf } from './event-types.ts';

function header(name: string, description: string, type: 'string' | 'integer', example: unknown) {
  return { name, in: 'header', required: true, description, schema: { type }, example } as const;
}

const HEADERS = [
  header(
    'webhook-id',
    'The `id` of the event. The ID is the same in each attempt: ignore events that you have already processed.',
    'string',
    EVENT_EXAMPLES['credits.added']?.id,
  ),
  header('webhook-timestamp', 'When Scrip sent this attempt, as Unix time in seconds.', 'integer', 1_795_161_602),
  header(
    'webhook-signature',
    'Signatures separated by spaces. Each is `v1,` and the HMAC-SHA256, in Base64, of `webhook-id`, `webhook-timestamp` and the body, joined by `.`. The key is the secret of the endpoint without `whsec_`, decoded from Base64. One valid signature is sufficient: for a day after the secret was replaced, there is a signature with each of the two secrets.',
    'string',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
];

const summaries: Readonly<Record<string, string>> = {
  ...Object.fromEntries(EVENT_TYPES.map((type) => [type, meaningOf(type)])),
  'webhook.test': 'A test of the webhook was requested.',
};

const examples = Object.fromEntries(
  Object.entries(EVENT_EXAMPLES).map(([type, value]) => [type, { summary: summaries[type] ?? type, value }]),
);

export const WEBHOOKS = {
  event: {
    post: {
      operationId: 'receiveEvent',
      tags: ['Events'],
      summary: 'Receive an event',
      description:
        'Scrip sends each event to the webhooks of the account, as [Standard Webhooks](https://www.standardwebhooks.com) specifies. Verify the signature over the bytes of the body before you parse them. The events of an end user arrive in the order in which they happened. An event may arrive more than once.',
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
        '2XX': { description: 'The event was received. Scrip does not send the event again.' },
        default: { description: 'The event was not received. Scrip will send the event again later.' },
      },
      security: [],
    },
  },
};
