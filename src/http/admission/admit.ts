// Checks every API call before its handler runs: the API key, the rate limit, the scope, and the limit on requests in
// flight.

import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Scope } from '../../accounts/api-key.ts';
import type { RateLimit } from '../../accounts/rate-limit.ts';
import { BATCH_COMMANDS_MAX } from '../../batching/group-commit.ts';
import type { ThroughputEstimate } from '../../batching/throughput-estimate.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Authenticator, Caller } from '../auth/authenticator.ts';
import { WAIT_MS_MAX } from '../limits.ts';
import { sendCanceled, sendError, sendProblem } from '../problem-reply.ts';
import type { PlainProblem } from '../problems.ts';
import { connectionOf } from './connections.ts';
import type { FairShare } from './fair-share.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any API handler runs. */
    caller: Caller;
    /**
     * Whether the request stops being in flight when its response is sent. False for a refused request, which was never
     * in flight, and for a request for a streamed list, which stays in flight until the stream is closed.
     */
    endsWithResponse: boolean;
  }
}

export interface Admission {
  readonly authenticator: Authenticator;
  readonly rateLimit: RateLimit | null;
  readonly inFlight: FairShare;
  readonly throughput: ThroughputEstimate;
}

export function admission(options: Admission, scope: Scope): onRequestHookHandler {
  return (request, reply, done) => {
    reply.header('cache-control', 'no-store');
    const go = (caller: Caller | null) => {
      const problem = admit(options, scope, caller, request, reply);
      if (problem === null) done();
      else sendProblem(reply, problem);
    };
    const { headers, socket } = request.raw;
    const connection = connectionOf(socket);
    const caller = options.authenticator.authenticate(headers.authorization, connection);
    // If the client has disconnected during the lookup of its key, Node no longer emits the body of the request. The
    // handler would never run, and the request would stay in flight forever.
    const goIfConnected = (found: Caller | null) => {
      if (connection.isDisconnected) sendCanceled(reply);
      else go(found);
    };
    if (caller instanceof Promise) caller.then(goIfConnected, (error) => sendError(reply, error));
    else go(caller);
  };
}

/** The account always comes from the API key, never from the fields of the request. */
export function endUserOf({ caller }: FastifyRequest, { end_user_id }: { end_user_id: string }): EndUserKey {
  return { account: caller.account, endUser: end_user_id.toLowerCase() };
}

/** @returns the problem to send; null if the request is admitted */
function admit(
  { rateLimit, inFlight, throughput }: Admission,
  scope: Scope,
  caller: Caller | null,
  request: FastifyRequest,
  reply: FastifyReply,
): PlainProblem | null {
  if (caller === null) return 'Unauthorized';
  if (rateLimit !== null && !isWithinRate(rateLimit, caller.id, reply)) return 'TooManyRequests';
  if (scope === 'write' && caller.scope !== 'write') return 'Forbidden';
  if (!mayBegin(inFlight, caller.account, throughput.perMs)) return 'Overloaded';
  inFlight.take(caller.account, 1);
  request.endsWithResponse = true;
  request.caller = caller;
  return null;
}

const RATE_POLICY = '"key"';

/** Sets the rate limit headers: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-11 */
function isWithinRate(limit: RateLimit, key: number, reply: FastifyReply): boolean {
  const { retryAfterSeconds, remaining, resetSeconds } = limit.take(key, performance.now());
  const { perSecond, burst } = limit.settings;
  // The window is rounded up, so that the policy never promises more requests than the limit allows.
  reply.header('ratelimit-policy', `${RATE_POLICY};q=${burst};w=${Math.ceil(burst / perSecond)}`);
  reply.header('ratelimit', `${RATE_POLICY};r=${remaining};t=${resetSeconds}`);
  if (retryAfterSeconds !== null) reply.header('retry-after', retryAfterSeconds);
  return retryAfterSeconds === null;
}

/** While the store writes one full batch, a second one can be queued. With fewer requests, the batches would be smaller. */
const TWO_FULL_BATCHES = 2 * BATCH_COMMANDS_MAX;

/**
 * Whether an account can start one more request. Two limits apply to the account's requests in flight:
 *
 * - the account's fair share
 * - the number of commands that the store completes in half a second, or two full batches of commands if that is more
 *
 * @param perMs the number of commands that the store completes per millisecond; null if unknown
 */
export function mayBegin(inFlight: FairShare, account: number, perMs: number | null): boolean {
  const inTime = perMs === null ? Number.POSITIVE_INFINITY : Math.max(TWO_FULL_BATCHES, perMs * WAIT_MS_MAX);
  return inFlight.heldBy(account) < inTime && inFlight.hasRoom(account, 1);
}
