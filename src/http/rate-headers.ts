// Where the rate of a key is limited, each of its answers says so in the fields of
// https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-11, and past the limit it is nothing but that.

import type { FastifyReply } from 'fastify';
import type { RateLimit } from '../accounts/rate-limit.ts';
import { sendProblem } from './problem.ts';

/** The name of the only policy. */
const POLICY = '"key"';

/** @returns whether the request may go on; it is answered when it may not */
export function admitAtRate(limit: RateLimit, key: number, reply: FastifyReply): boolean {
  const { retryAfterSeconds, remaining, resetSeconds } = limit.take(key, performance.now());
  const { perSecond, burst } = limit.settings;
  // The window is rounded up, so that whoever paces itself by it is never refused.
  reply.header('ratelimit-policy', `${POLICY};q=${burst};w=${Math.ceil(burst / perSecond)}`);
  reply.header('ratelimit', `${POLICY};r=${remaining};t=${resetSeconds}`);
  if (retryAfterSeconds === null) return true;
  reply.header('retry-after', retryAfterSeconds);
  sendProblem(reply, 'TooManyRequests', { detail: 'Nothing was changed. Try again in a moment.' });
  return false;
}
