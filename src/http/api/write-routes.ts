// The routes for credits and cycles.

import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import type { Accepted, Refund, RefundResult, StartCycle, StopCycle } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { VALIDITY_DAYS_DEFAULT, VALIDITY_DAYS_MAX } from '../../ledger/instant.ts';
import type { Validity } from '../../ledger/plan.ts';
import { admission } from '../admission/admit.ts';
import { invalidField } from '../problems.ts';
import type { CallOptions } from './call-options.ts';
import * as credits from './calls/credits.ts';
import * as cycles from './calls/cycles.ts';
import { cycleObject, movedText } from './replies.ts';
import { issuedBy, submit } from './submit.ts';

export function writeRoutes(app: FastifyInstance, options: CallOptions): void {
  const { commit } = options;
  const onRequest = admission(options, 'write');
  const route = (schema: FastifySchema) => ({ onRequest, schema });

  app.post<{ Body: credits.AddRequest }>('/add', route(credits.add), (request, reply) => {
    const { amount } = request.body;
    const validity = validityOf(request.body);
    submit(commit, request, reply, { ...issuedBy(request), kind: 'add', amount, ...validity }, movedText);
  });

  app.post<{ Body: credits.SubtractRequest }>('/subtract', route(credits.subtract), (request, reply) => {
    const { amount } = request.body;
    submit(commit, request, reply, { ...issuedBy(request), kind: 'subtract', amount }, movedText);
  });

  app.post<{ Body: credits.RefundRequest }>('/refund', route(credits.refund), (request, reply) => {
    const { transaction_id, amount = null, validity_days = null } = request.body;
    const validityDays = validity_days === null ? null : validityDaysOf(validity_days);
    const terms = { transactionId: transaction_id.toLowerCase(), amount, validityDays };
    submit(commit, request, reply, { kind: 'refund', ...issuedBy(request), ...terms }, refundText);
  });

  app.post<{ Body: cycles.StartCycleRequest }>('/start-cycle', route(cycles.startCycle), (request, reply) => {
    submit(commit, request, reply, startCycleOf(request), cycleText);
  });

  app.post<{ Body: cycles.StopCycleRequest }>('/stop-cycle', route(cycles.stopCycle), (request, reply) =>
    submit(commit, request, reply, { kind: 'stop-cycle', ...issuedBy(request) }, cycleText),
  );
}

export function startCycleOf(request: FastifyRequest<{ Body: cycles.StartCycleRequest }>): StartCycle {
  const { amount, rollover_max: rolloverMax = 0, on_active: onActive = 'refuse' } = request.body;
  return { kind: 'start-cycle', ...issuedBy(request), amount, ...validityOf(request.body), rolloverMax, onActive };
}

interface ValidityFields {
  readonly validity_days?: number | null;
  readonly validity_months?: number | null;
}

function validityOf({ validity_days: days = null, validity_months: months = null }: ValidityFields): Validity {
  if (months === null) return { validityDays: validityDaysOf(days), validityMonths: null };
  if (days === null) return { validityDays: null, validityMonths: months };
  throw invalidField('/validity_months', 'must not be sent together with validity_days; send only one of the two');
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
