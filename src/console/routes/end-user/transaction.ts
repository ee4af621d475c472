// Routes for the transaction page and its forms, which refund the transaction or release an open hold.

import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Amount } from '../../../ledger/amount.ts';
import { type Referenced, refundableByPeriod } from '../../../ledger/decide-refund.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { type Posting, transactionOf } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import { wholeTransactions } from '../../../store/transaction-history.ts';
import type { ConsoleContext } from '../../console-context.ts';
import { creditsText } from '../../figures.ts';
import { endUserPath } from '../../pages/end-user/end-user-paths.ts';
import { TRANSACTION_ACTIONS, type TransactionAction, transactionPage } from '../../pages/end-user/transaction.ts';
import type { FormState } from '../../pages/form-field.ts';
import type { On } from '../../permissions.ts';
import { pathField, queryField, redirectTo, sendError, sendPage } from '../../request-reply.ts';
import { actorNames, actorOf } from '../actor-names.ts';
import { normalizedUuid } from '../end-users.ts';
import { readChange } from './change-form.ts';
import { type EndUserRequest, forEndUser } from './end-user-request.ts';
import { submitChange } from './submit-change.ts';

export function transactionRoutes(on: On, context: ConsoleContext): void {
  const path = '/console/end-users/:endUser/transactions/:transaction';
  on(`GET ${path}`, forEndUser(context, sendTransaction, { state: null }));
  for (const action of TRANSACTION_ACTIONS) on(`POST ${path}/${action}`, forEndUser(context, change, action));
}

interface PageOptions {
  readonly state: FormState | null;
  readonly idempotencyKey?: string;
}

async function sendTransaction(
  context: ConsoleContext,
  endUserRequest: EndUserRequest,
  { state, idempotencyKey = randomUUID() }: PageOptions,
): Promise<FastifyReply> {
  const { reply, viewer, user } = endUserRequest;
  const { ledger } = context.options.stores;
  const id = transactionIdOf(endUserRequest);
  const referenced = id === null ? null : await ledger.find(user, id);
  if (id === null || referenced === null) return sendNotFound(endUserRequest);
  const [{ state: current, now }, page, nameOf] = await Promise.all([
    ledger.load(user),
    ledger.history(user, { from: null, limit: 1, within: { first: id, last: id } }),
    actorNames(context, user.account),
  ]);
  const [transaction] = page.transactions;
  if (transaction === undefined) return sendNotFound(endUserRequest);
  const refunds = [...wholeTransactions(referenced.refunds, ({ transactionId }) => transactionId)].map(transactionOf);
  const view = {
    endUser: user.endUser,
    now,
    transaction: { ...transaction, by: nameOf(transaction.actor) },
    terms: page.terms,
    refunds: refunds.map((refund) => ({ ...refund, by: nameOf(refund.actor) })),
    refundableExpired: refundableExpired(referenced, now),
    holdExpiresAt: current.holds.find((hold) => hold.id === id)?.expiresAt ?? null,
    state,
    idempotencyKey,
  };
  return sendPage(reply, transactionPage(view, viewer));
}

function transactionIdOf({ request }: EndUserRequest): TransactionId | null {
  return normalizedUuid(pathField(request, 'transaction'));
}

function sendNotFound({ reply, viewer }: EndUserRequest): FastifyReply {
  const detail = 'This end user has no such transaction.';
  return sendError(reply, 404, { title: 'Transaction not found', detail }, viewer);
}

function refundableExpired(referenced: Referenced, now: Instant): Amount {
  return [...refundableByPeriod(referenced).values()]
    .filter(({ expiresAt }) => expiresAt <= now)
    .reduce((sum, { amount }) => sum + amount, 0);
}

async function change(
  context: ConsoleContext,
  endUserRequest: EndUserRequest,
  action: TransactionAction,
): Promise<FastifyReply> {
  const { request, reply, viewer, user } = endUserRequest;
  const transactionId = transactionIdOf(endUserRequest);
  if (transactionId === null) return sendNotFound(endUserRequest);
  const form = { kind: action, transactionId };
  const { state, command } = readChange(form, request, { ...user, actor: actorOf(viewer) });
  if (command === null) return sendTransaction(context, endUserRequest, { state });
  const submitted = await submitChange(context, request, command);
  if (submitted.errors === null)
    return redirectTo(reply, `${endUserPath(user.endUser)}?notice=${action}&transaction=${submitted.transactionId}`);
  const { errors, idempotencyKey } = submitted;
  return sendTransaction(context, endUserRequest, { state: { ...state, errors }, idempotencyKey });
}

/** Returns null unless the query string names a refund or a release of this end user. */
export async function transactionNotice(
  { options }: ConsoleContext,
  { request, user }: EndUserRequest,
): Promise<string | null> {
  const action = TRANSACTION_ACTIONS.find((known) => known === queryField(request, 'notice'));
  const id = normalizedUuid(queryField(request, 'transaction'));
  if (action === undefined || id === null) return null;
  const [first, ...others] = (await options.stores.ledger.find(user, id))?.postings ?? [];
  if (first?.kind !== action) return null;
  return action === 'refund' ? refundNotice([first, ...others]) : releaseNotice([first, ...others]);
}

function refundNotice(postings: readonly [Posting, ...Posting[]]): string {
  const restored = transactionOf(postings).amount;
  // Skip the posting that opens a new cycle: it grants the expired credits again, and the other postings already
  // include these credits.
  const wanted = postings.reduce((sum, { terms, amount }) => sum + (terms === null ? amount : 0), 0);
  const expired = wanted - restored;
  if (restored === 0)
    return `Nothing restored: the ${creditsText(expired)} came from a cycle or period that has ended.`;
  return `${creditsText(restored)} restored.${expiredText(expired)}`;
}

function releaseNotice(postings: readonly Posting[]): string {
  const heldBy = (those: readonly Posting[]) => those.reduce((sum, { held }) => sum - held, 0);
  const returned = heldBy(postings.filter(({ expiresAt, createdAt }) => expiresAt > createdAt));
  return `Hold released: ${creditsText(returned)} returned.${expiredText(heldBy(postings) - returned)}`;
}

function expiredText(expired: Amount): string {
  return expired === 0 ? '' : ` ${creditsText(expired)} expired because the cycle or period had ended.`;
}
