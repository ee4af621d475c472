// Previews a change of plan: determines the outcome of a `/start-cycle` command without storing anything.

import type { FastifyInstance } from 'fastify';
import { type Preview, previewOf } from '../../ledger/preview.ts';
import { admission } from '../admission/admit.ts';
import { sendError, sendProblem } from '../problem-reply.ts';
import type { CallOptions } from './call-options.ts';
import * as cycles from './calls/cycles.ts';
import { cycleEntryText, sendPieces, timestamp } from './replies.ts';
import { particularsOf } from './submit.ts';
import { startCycleOf } from './write-routes.ts';

export function previewRoute(app: FastifyInstance, options: CallOptions): void {
  const { ledger, unsent } = options;
  app.post<{ Body: cycles.PreviewChangeRequest }>(
    '/preview-change',
    { onRequest: admission(options, 'read'), schema: cycles.previewChange },
    (request, reply) => {
      const command = startCycleOf(request);
      ledger
        .load(command)
        .then(({ state, now }) => {
          const preview = previewOf(state, command, now);
          if (preview.refused !== null) return sendProblem(reply, preview.refused, particularsOf(command, preview));
          sendPieces(unsent, reply, [previewText(command.endUser, preview)]);
        })
        .catch((error) => sendError(reply, error));
    },
  );
}

function previewText(endUser: string, preview: Preview): string {
  const { startsAt, cycles, balance, balanceAtStart, expiring } = preview;
  return (
    `{"end_user_id":"${endUser}","starts_at":"${timestamp(startsAt)}","active_balance":${balance},` +
    `"active_balance_at_start":${balanceAtStart},"expiring":${expiring},` +
    `"active_balance_by_cycle":[${cycles.map(cycleEntryText).join(',')}]}`
  );
}
