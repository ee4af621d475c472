// Converts the forms about an end user to commands, and invalid values to errors for the fields of the form.

import type { FastifyRequest } from 'fastify';
import type { Amount } from '../../../ledger/amount.ts';
import type { EndUserKey, WriteCommand } from '../../../ledger/command.ts';
import { type Actor, NOTE_LENGTH_MAX, type Note } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { Adjustment } from '../../pages/end-user/adjust-forms.ts';
import type { TransactionAction } from '../../pages/end-user/transaction.ts';
import type { FormState } from '../../pages/form-field.ts';
import { formField } from '../../request-reply.ts';
import { type FieldReading, readAmount, readLine, readOptional, readValidityDays } from '../form-input.ts';

/** The form that was sent, and the transaction that it concerns. */
export type ChangeForm =
  | { readonly kind: Adjustment }
  | { readonly kind: TransactionAction; readonly transactionId: TransactionId };

/** The end user and the actor of a command. */
export interface Subject extends EndUserKey {
  readonly actor: Actor;
}

export interface SentForm {
  readonly state: FormState;
  /** Null if the form has errors. */
  readonly command: WriteCommand | null;
}

export function readChange(form: ChangeForm, request: FastifyRequest, subject: Subject): SentForm {
  const values = {
    amount: formField(request, 'amount'),
    validity_days: formField(request, 'validity_days'),
    note: formField(request, 'note'),
  };
  const readings = {
    amount: hasAmount(form) ? readAmount(values.amount) : null,
    validity_days: readValidity(form, values.validity_days),
    note: readLine(values.note, NOTE_LENGTH_MAX),
  };
  const errors = Object.fromEntries(Object.entries(readings).map(([name, reading]) => [name, reading?.error ?? null]));
  const state = { values, errors };
  if (Object.values(errors).some((error) => error !== null)) return { state, command: null };
  const { amount, validity_days: validity, note } = readings;
  const fields = { amount: amount?.value ?? 0, validityDays: validity?.value ?? null, note: note.value };
  return { state, command: commandOf(form, fields, subject) };
}

function hasAmount({ kind }: ChangeForm): boolean {
  return kind !== 'stop-cycle' && kind !== 'release';
}

/** Returns null for forms without a validity. In the form for refunds, the validity is optional. */
function readValidity({ kind }: ChangeForm, text: string): FieldReading<number | null> | null {
  if (kind === 'refund') return readOptional(text, readValidityDays);
  return kind === 'add' || kind === 'start-cycle' ? readValidityDays(text) : null;
}

interface Fields {
  readonly amount: Amount;
  readonly validityDays: number | null;
  readonly note: Note | null;
}

function commandOf(form: ChangeForm, { amount, validityDays, note }: Fields, subject: Subject): WriteCommand {
  const request = { ...subject, note };
  const days = validityDays ?? 0;
  switch (form.kind) {
    case 'add':
      return { ...request, kind: 'add', amount, validityDays: days };
    case 'subtract':
      return { ...request, kind: 'subtract', amount };
    case 'start-cycle':
      return { ...request, kind: 'start-cycle', amount, validityDays: days, onActive: 'refuse' };
    case 'stop-cycle':
      return { ...request, kind: 'stop-cycle' };
    case 'refund':
      return { ...request, kind: 'refund', transactionId: form.transactionId, amount, validityDays };
    case 'release':
      return { ...request, kind: 'release', holdId: form.transactionId };
  }
}
