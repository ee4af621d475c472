// The retry schedule for failed deliveries: Scrip retries for about three days, as Standard Webhooks recommends. Jitter
// spreads the retries of many events over time.

import { HOUR_MS } from '../../ledger/instant.ts';

const MINUTE_MS = 60_000;

export const RETRY_DELAYS_MS: readonly number[] = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

const JITTER = 0.2;

/**
 * @param failures the number of failed attempts so far, at least 1
 * @param random at least 0 and less than 1
 * @returns the delay until the next attempt, in milliseconds; null after the last attempt
 */
export function retryDelayMs(failures: number, random: number): number | null {
  const delay = RETRY_DELAYS_MS[failures - 1];
  return delay === undefined ? null : Math.round(delay * (1 - JITTER + 2 * JITTER * random));
}
