// The routes that add, subtract and refund credits and that start and stop cycles: convert requests to commands, and
// outcomes to responses.

import type { FastifyInstance, FastifySchema } from 'fastify';
import type { GroupCommit } from '../../batching/group-commit.ts';
import type { Accepted, Refund, RefundResult, StartCycle, StopCycle } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import { type Admission, admission } from '../admission/admit.ts';
import * as credits from './calls/credits.ts';
import * as cycles from './calls/cycles.ts';
import { cycleObject, movedText } from './replies.ts';
import { issuedBy, submit } from './submit.ts';

export interface WriteRoutesOptions extends Admission {
  readonly commit: GroupCommit;
}

export function writeRoutes(app: FastifyInstance, options: WriteRoutesOptions): void {
  const { commit } = options;
  const onRequest = admission(options, 'write');
  const route = (schema: FastifySchema) => ({ onRequest, schema });

  app.post<{ Body: credits.AddRequest }>('/add', route(credits.add), (request, reply) => {
    const { amount, validity_days } = request.body;
    const validityDays = validityDaysOf(validity_days);
    submit(commit, request, reply, { kind: 'add', ...issuedBy(request), amount, validityDays }, movedText);
  });

  app.post<{ Body: credits.SubtractRequest }>('/subtract', route(credits.subtract), (request, reply) => {
    const { amount } = request.body;
    submit(commit, request, reply, { kind: 'subtract', ...issuedBy(request), amount }, movedText);
  });

  app.post<{ Body: credits.RefundRequest }>('/refund', route(credits.refund), (request, reply) => {
    const { transaction_id, amount = null, validity_days = null } = request.body;
    const validityDays = validity_days === null ? null : validityDaysOf(validity_days);
    const terms = { transactionId: transaction_id.toLowerCase(), amount, validityDays };
    submit(commit, request, reply, { kind: 'refund', ...issuedBy(request), ...terms }, refundText);
  });

  app.post<{ Body: cycles.StartCycleRequest }>('/start-cycle', route(cycles.startCycle), (request, reply) => {
    const { amount, validity_days, on_active } = request.body;
    const terms = { amount, validityDays: validityDaysOf(validity_days), onActive: on_active ?? 'refuse' } as const;
    submit(commit, request, reply, { kind: 'start-cycle', ...issuedBy(request), ...terms }, cycleText);
  });

  app.post<{ Body: cycles.StopCycleRequest }>('/stop-cycle', route(cycles.stopCycle), (request, reply) =>
    submit(commit, request, reply, { kind: 'stop-cycle', ...issuedBy(request) }, cycleText),
  );
}

function validityDaysOf(days: number | null | undefined): number {
  return Math.min(days ?? VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX);
}

function cycleText({ endUser }: StartCycle | StopCycle, { cycle }: Accepted): string {
  return JSON.stringify(cycleObject(endUser, cycle as Cycle));
}

function refundText({ endUser }: Refund, { transactionId, refund }: Accepted): string {
  const { restored, expired } = refund as RefundResult;
  return `{"end_user_id":"${endUser}","transaction_id":"${transactionId}","amount":${restored},"expired":${expired}}`;
}
