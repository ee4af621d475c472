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
 * Retries continue for at least this long. If a user or a recovering endpoint causes additional attempts, the delays of
 * the schedule are used up sooner, and the last delay is then repeated.
 */
export const RETRIED_MS = (1 - JITTER) * RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0);

/**
 * @param failures the number of failed attempts so far, at least 1
 * @param elapsedMs the time since the first attempt
 * @param random at least 0 and less than 1
 * @returns the delay until the next attempt, in milliseconds; null after the last attempt
 */
export function retryDelayMs(failures: number, elapsedMs: number, random: number): number | null {
  if (failures > RETRY_DELAYS_MS.length && elapsedMs >= RETRIED_MS) return null;
  const delay = RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length) - 1] as number;
  return Math.round(delay * (1 - JITTER + 2 * JITTER * random));
}
