// Turns the forms of an end user's page into commands, and refusals and faults into errors for the form's fields.

import type { FastifyRequest } from 'fastify';
import type { NotBegun } from '../../batching/group-commit.ts';
import { formText, refusalDetail } from '../../http/problems.ts';
import type { Add, EndUserKey, Outcome, StartCycle, StopCycle, Subtract } from '../../ledger/command.ts';
import { NOTE_LENGTH_MAX } from '../../ledger/posting.ts';
import type { StoreFault } from '../../store/store-fault.ts';
import type { Adjustment } from '../pages/adjust-forms.ts';
import { type FormState, WHOLE_FORM } from '../pages/form-field.ts';
import { formField } from '../request-reply.ts';
import { readAmount, readLine, readValidityDays } from './form-input.ts';

export type NotedCommand = (Add | Subtract | StartCycle | StopCycle) & { readonly note: string | null };

export interface SentForm {
  readonly state: FormState;
  /** Null if the form has errors. */
  readonly command: NotedCommand | null;
}

export function readChange(
  adjustment: Adjustment,
  request: FastifyRequest,
  subject: EndUserKey & { readonly actor: string },
): SentForm {
  const values = {
    amount: formField(request, 'amount'),
    validity_days: formField(request, 'validity_days'),
    note: formField(request, 'note'),
  };
  const note = readLine(values.note, NOTE_LENGTH_MAX);
  const amount = adjustment === 'stop-cycle' ? null : readAmount(values.amount);
  const validity = adjustment === 'add' || adjustment === 'start-cycle' ? readValidityDays(values.validity_days) : null;
  const errors = { amount: amount?.error ?? null, validity_days: validity?.error ?? null, note: note.error };
  const state = { values, errors };
  if (Object.values(errors).some((error) => error !== null)) return { state, command: null };
  const command = { ...subject, note: note.value };
  const fields = { amount: amount?.value ?? 0, validityDays: validity?.value ?? 0 };
  switch (adjustment) {
    case 'add':
      return { state, command: { ...command, ...fields, kind: 'add' } };
    case 'subtract':
      return { state, command: { ...command, kind: 'subtract', amount: fields.amount } };
    case 'start-cycle':
      return { state, command: { ...command, ...fields, kind: 'start-cycle', onActive: 'refuse' } };
    case 'stop-cycle':
      return { state, command: { ...command, kind: 'stop-cycle' } };
  }
}

export function faultErrors({ code }: StoreFault | NotBegun): FormState['errors'] {
  // Commands from forms are never canceled, so `Canceled` needs no text of its own.
  return { [WHOLE_FORM]: formText(code === 'Canceled' ? 'Overloaded' : code) };
}

/** Returns null if the command was accepted. */
export function refusalErrors(outcome: Outcome): FormState['errors'] | null {
  switch (outcome.refused) {
    case null:
      return null;
    case 'InsufficientFunds':
    case 'BalanceTooLarge':
      return { amount: refusalDetail(outcome) };
    default:
      return { [WHOLE_FORM]: formText(outcome.refused) };
  }
}
