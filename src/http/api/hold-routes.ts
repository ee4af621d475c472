// The routes for holds.

import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Accepted, Capture, EndUserKey, Hold as HoldCommand, HoldResult, Release } from '../../ledger/command.ts';
import { HOLD_SECONDS_DEFAULT, type Hold, heldBy } from '../../ledger/hold.ts';
import { instantOf } from '../../ledger/transaction-id.ts';
import type { LoadedEndUser } from '../../store/loaded-end-user.ts';
import { admission, endUserOf } from '../admission/admit.ts';
import { sendError } from '../problem-reply.ts';
import type { CallOptions } from './call-options.ts';
import type { EndUserQuery } from './calls/fields.ts';
import * as holds from './calls/holds.ts';
import { mergeBodyIntoQuery } from './query-fields.ts';
import { sendPieces, timestamp } from './replies.ts';
import { issuedBy, submit } from './submit.ts';

export function holdRoutes(app: FastifyInstance, options: CallOptions): void {
  const { commit, ledger, unsent } = options;
  const onWrite = admission(options, 'write');
  const write = (schema: FastifySchema) => ({ onRequest: onWrite, schema });

  app.post<{ Body: holds.HoldRequest }>('/hold', write(holds.hold), (request, reply) => {
    const { amount, expires_in_seconds } = request.body;
    const expiresInSeconds = expires_in_seconds ?? HOLD_SECONDS_DEFAULT;
    submit(commit, request, reply, { kind: 'hold', ...issuedBy(request), amount, expiresInSeconds }, heldText);
  });

  app.get<{ Querystring: EndUserQuery }>(
    '/get-holds',
    { onRequest: admission(options, 'read'), preValidation: mergeBodyIntoQuery, schema: holds.getHolds },
    (request, reply) => {
      const user = endUserOf(request, request.query);
      ledger
        .load(user)
        .then((loaded) => sendPieces(unsent, reply, [holdListText(user, loaded)]))
        .catch((error) => sendError(reply, error));
    },
  );

  app.post<{ Body: holds.CaptureRequest }>('/capture', write(holds.capture), (request, reply) => {
    const { hold_id, amount = null } = request.body;
    const command = { kind: 'capture', ...issuedBy(request), holdId: hold_id.toLowerCase(), amount } as const;
    submit(commit, request, reply, command, capturedText);
  });

  app.post<{ Body: holds.ReleaseRequest }>('/release', write(holds.release), (request, reply) => {
    const command = { kind: 'release', ...issuedBy(request), holdId: request.body.hold_id.toLowerCase() } as const;
    submit(commit, request, reply, command, releasedText);
  });
}

function heldText({ endUser }: HoldCommand, { hold }: Accepted): string {
  const { id, amount, createdAt, expiresAt } = hold as HoldResult;
  return `{"end_user_id":"${endUser}",${openMembers(id, amount, createdAt, expiresAt)}}`;
}

function capturedText({ endUser, holdId }: Capture, { transactionId, hold }: Accepted): string {
  const { captured, returned, expired } = hold as HoldResult;
  return `{"end_user_id":"${endUser}","hold_id":"${holdId}","transaction_id":"${transactionId}","amount":${captured},"returned":${returned},"expired":${expired},"status":"captured"}`;
}

function releasedText({ endUser, holdId }: Release, { hold }: Accepted): string {
  const { amount, returned, expired } = hold as HoldResult;
  return `{"end_user_id":"${endUser}","hold_id":"${holdId}","amount":${amount},"returned":${returned},"expired":${expired},"status":"released"}`;
}

/** An end user has at most 1,000 open holds, so the list is short enough to write in one piece. */
function holdListText({ endUser }: EndUserKey, { now, state }: LoadedEndUser): string {
  const open = state.holds.filter(({ expiresAt }) => expiresAt > now).sort(byCreation);
  const entries = open.map((hold) => `{${openMembers(hold.id, heldBy(hold), instantOf(hold.id), hold.expiresAt)}}`);
  return `{"end_user_id":"${endUser}","holds":[${entries.join(',')}]}`;
}

/** Sorted by ID, holds are in order of creation. */
function byCreation({ id: a }: Hold, { id: b }: Hold): number {
  return a < b ? -1 : 1;
}

function openMembers(id: string, amount: number, createdAt: number, expiresAt: number): string {
  return `"hold_id":"${id}","amount":${amount},"created_at":"${timestamp(createdAt)}","expires_at":"${timestamp(expiresAt)}","status":"open"`;
}
