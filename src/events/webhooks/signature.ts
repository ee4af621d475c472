// The headers that identify and sign a webhook. Specification: https://www.standardwebhooks.com

import { createHmac } from 'node:crypto';
import { secretBytes } from './secrets.ts';

interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * @param secrets the endpoint's secret; after a rotation, the previous secret as well. The headers contain one
 * signature for each secret, and receivers accept any valid signature.
 */
export function signatureHeaders(content: SignedContent, secrets: readonly string[]): Record<string, string> {
  return {
    'webhook-id': content.id,
    'webhook-timestamp': String(content.timestamp),
    'webhook-signature': secrets.map((secret) => signatureOf(content, secret)).join(' '),
  };
}

function signatureOf({ id, timestamp, body }: SignedContent, secret: string): string {
  const hmac = createHmac('sha256', secretBytes(secret)).update(`${id}.${timestamp}.${body}`);
  return `v1,${hmac.digest('base64')}`;
}
