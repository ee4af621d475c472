// Signs webhooks as Standard Webhooks specifies, without using Scrip's code.

import { createHmac } from 'node:crypto';

export interface Signed {
  readonly id: string;
  /** In seconds since 1970. */
  readonly timestamp: number;
  readonly body: string | Uint8Array;
}

export function signatureOf({ id, timestamp, body }: Signed, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

export function headersOf(signed: Signed, ...secrets: readonly string[]): Record<string, string> {
  return {
    'webhook-id': signed.id,
    'webhook-timestamp': String(signed.timestamp),
    'webhook-signature': secrets.map((secret) => signatureOf(signed, secret)).join(' '),
  };
}
