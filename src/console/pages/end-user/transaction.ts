// The page for one transaction, with a form that refunds the transaction or releases an open hold.

import { html } from 'ghtml';
import type { Amount } from '../../../ledger/amount.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { isListed, type PostingKind } from '../../../ledger/posting.ts';
import { instantOf, type TransactionId } from '../../../ledger/transaction-id.ts';
import type { HistoryPage } from '../../../store/transaction-history.ts';
import { durationText, endTimeUtc, moment, momentUtc, numberText, wrappableNumber } from '../../figures.ts';
import { type Page, page } from '../../layout.ts';
import { anyError, type FormState, field, formError, idempotencyKeyInput } from '../form-field.ts';
import { type Activity, actorLabel, byCell, type Fact, factList, kindBadge, table } from '../lists.ts';
import { planSummaryText } from './cycle-names.ts';
import { endUserPath, transactionPath } from './end-user-paths.ts';
import { type HistoryEntry, movedCredits, touchedCycles } from './history.ts';

export const TRANSACTION_ACTIONS = ['refund', 'release'] as const;
export type TransactionAction = (typeof TRANSACTION_ACTIONS)[number];

export interface TransactionView {
  readonly endUser: string;
  readonly now: Instant;
  readonly transaction: HistoryEntry;
  readonly terms: HistoryPage['terms'];
  /** The refunds of the transaction, oldest first. */
  readonly refunds: readonly Activity[];
  /** The refundable credits of cycles and periods that have ended. */
  readonly refundableExpired: Amount;
  /** The instant at which the hold lapses; null if the transaction is not a hold, or the hold was closed. */
  readonly holdExpiresAt: Instant | null;
  readonly state: FormState | null;
  readonly idempotencyKey: string;
}

export function transactionPage(view: TransactionView, viewer: Page['viewer']): string {
  const { endUser, transaction } = view;
  const body = html`<p class="crumb"><a href="${endUserPath(endUser)}">Back to end user ${endUser}</a></p>
<div class="heading-row"><h1>Transaction <span class="mono id" id="transaction-id">${transaction.id}</span></h1>
<button class="button secondary small" type="button" data-copy="transaction-id" hidden>Copy</button>
<span class="muted small" id="transaction-id-copied" role="status"></span></div>
!${factsSection(view)}
!${actionSection(view)}
!${refundsSection(view)}`;
  return page({ title: `Transaction ${transaction.id}`, viewer, current: 'end-users', body });
}

function factsSection(view: TransactionView): string {
  const { endUser, now, transaction, terms, holdExpiresAt } = view;
  const { kind, createdAt, expiresAt, by, note, reference, refundable, scheduled } = transaction;
  const isOpen = holdExpiresAt !== null && holdExpiresAt > now;
  const facts: readonly Fact[] = [
    ['Type', kindBadge(kind)],
    ['Amount', movedCredits(transaction)],
    ['Time', momentUtc(createdAt)],
    ['By', actorLabel(by)],
    ['Note', note === null ? '' : html`<bdi>“${note}”</bdi>`],
    [transaction.postings.length === 1 ? 'Cycle' : 'Cycles', touchedCycles(transaction, terms)],
    ['Expires', isListed(kind) ? endTimeUtc(expiresAt) : ''],
    ['Open until', isOpen ? html`!${momentUtc(holdExpiresAt)} (${durationText(holdExpiresAt - now)} left)` : ''],
    ['Status', kind === 'hold' && !isOpen ? 'Closed: the hold was captured or released, or it lapsed.' : ''],
    ['New plan', scheduled === null ? '' : html`${planSummaryText(scheduled)}`],
    ['From', scheduled === null ? '' : endTimeUtc(expiresAt)],
    [REFERENCE_NAMES[kind] ?? 'Hold', reference === null ? '' : transactionLink(endUser, reference)],
    ['Refundable', refundable === null ? '' : html`!${wrappableNumber(refundable)}`],
  ];
  return html`<section class="card">
!${factList(facts)}
</section>`;
}

const REFERENCE_NAMES: Partial<Record<PostingKind, string>> = { refund: 'Refund of', 'change-plan': 'Scheduled' };

function transactionLink(endUser: string, id: TransactionId): string {
  return html`<a href="${transactionPath(endUser, id)}">!${momentUtc(instantOf(id))}</a>`;
}

function actionSection(view: TransactionView): string {
  const { now, transaction, holdExpiresAt, state } = view;
  if (holdExpiresAt !== null && holdExpiresAt > now) return releaseForm(view);
  if ((transaction.refundable ?? 0) > 0) return refundForm(view);
  return anyError(state);
}

const NOTE = { id: 'note', name: 'note', label: 'Note', isOptional: true };

function releaseForm({ endUser, transaction, state, idempotencyKey }: TransactionView): string {
  return html`<section class="card narrow">
<h2>Release this hold</h2>
<p class="muted small">The credits return to their cycles. If a cycle or period has ended, its credits expire instead. After the release, your backend can no longer capture the hold.</p>
<form class="form" method="post" action="${transactionPath(endUser, transaction.id)}/release" novalidate>
!${formError(state)}
!${field(NOTE, state)}
!${idempotencyKeyInput(idempotencyKey)}
<div class="buttons"><button class="button danger" type="submit">Release hold</button>
<a class="button secondary" href="${endUserPath(endUser)}">Cancel</a></div>
</form>
</section>`;
}

function refundForm(view: TransactionView): string {
  const { endUser, transaction, refundableExpired, state, idempotencyKey } = view;
  const initial = String(transaction.refundable ?? 0);
  return html`<section class="card narrow">
<h2>Refund</h2>
<p class="muted small">The credits return to the cycles that they came from. A partial refund first returns the credits that were spent last.</p>
<form class="form" method="post" action="${transactionPath(endUser, transaction.id)}/refund" novalidate>
!${formError(state)}
!${field({ id: 'amount', name: 'amount', label: 'Amount', initial, isWholeNumber: true }, state)}
!${refundableExpired === 0 && !state?.errors.validity_days ? '' : validityField(view)}
!${field(NOTE, state)}
!${idempotencyKeyInput(idempotencyKey)}
<div class="buttons"><button class="button" type="submit">Refund</button>
<a class="button secondary" href="${endUserPath(endUser)}">Cancel</a></div>
</form>
</section>`;
}

/** Credits of ended cycles and periods are restored only if the user enters a validity for the restored credits. */
function validityField({ refundableExpired: expired, state }: TransactionView): string {
  const expiry = expired === 1 ? 'It expires immediately' : 'They expire immediately';
  const hint = `${numberText(expired)} of these credits came from a cycle or period that has ended. ${expiry}, and cannot be refunded again, unless you enter a number of days.`;
  const options = { id: 'validity_days', name: 'validity_days', label: 'Valid for (days)' };
  return field({ ...options, hint, isOptional: true, isWholeNumber: true }, state);
}

function refundsSection({ endUser, refunds }: TransactionView): string {
  if (refunds.length === 0) return '';
  const rows = refunds.map(
    (refund) => html`<tr role="row">
<td role="cell" data-label="Time" class="when"><a href="${transactionPath(endUser, refund.id)}">!${moment(refund.createdAt)}</a></td>
<td role="cell" data-label="Restored" class="number">${numberText(refund.amount)}</td>
!${byCell(refund)}
</tr>`,
  );
  const columns = [['Time (UTC)'], ['Restored', 'number'], ['By and note']] as const;
  return html`<section class="card">
<h2>Refunds</h2>
!${table({ label: 'Refunds', columns, rows })}
</section>`;
}
