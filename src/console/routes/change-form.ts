// The forms of an end user's page as commands: what was typed, read field by field, and what the ledger answered, said at
// the field that it is about.

import type { FastifyRequest } from 'fastify';
import type { Add, EndUserKey, Outcome, StartCycle, StopCycle, Subtract } from '../../ledger/command.ts';
import type { FaultCode, StoreFault } from '../../store/store.ts';
import { creditsOf } from '../figures.ts';
import { type Change, NOTE_CHARACTERS_MAX } from '../pages/adjust-forms.ts';
import { type Entered, WHOLE_FORM } from '../pages/form-field.ts';
import { formField } from './console-ports.ts';
import { readAmount, readLine, readValidityDays } from './form-input.ts';

/** A command with why it is done. */
export type NotedCommand = (Add | Subtract | StartCycle | StopCycle) & { readonly note: string | null };

export interface SentForm {
  /** What was typed, to be shown again, and what is wrong with it. */
  readonly entered: Entered;
  /** Null when something is wrong. */
  readonly command: NotedCommand | null;
}

export function readChange(
  change: Change,
  request: FastifyRequest,
  subject: EndUserKey & { readonly actor: string },
): SentForm {
  const values = {
    amount: formField(request, 'amount'),
    validity_days: formField(request, 'validity_days'),
    note: formField(request, 'note'),
  };
  const note = readLine(values.note, NOTE_CHARACTERS_MAX);
  const amount = change === 'stop-cycle' ? null : readAmount(values.amount);
  const validity = change === 'add' || change === 'start-cycle' ? readValidityDays(values.validity_days) : null;
  const errors = {
    ...(amount?.error ? { amount: amount.error } : {}),
    ...(validity?.error ? { validity_days: validity.error } : {}),
    ...(note.error ? { note: note.error } : {}),
  };
  const entered = { values, errors };
  if (Object.keys(errors).length > 0) return { entered, command: null };
  const fields = { amount: amount?.value ?? 0, validityDays: validity?.value ?? 0 };
  return { entered, command: commandOf(change, { ...subject, note: note.value }, fields) };
}

function commandOf(
  kind: Change,
  subject: EndUserKey & { readonly actor: string; readonly note: string | null },
  { amount, validityDays }: { readonly amount: number; readonly validityDays: number },
): NotedCommand {
  switch (kind) {
    case 'add':
      return { ...subject, kind, amount, validityDays };
    case 'subtract':
      return { ...subject, kind, amount };
    case 'start-cycle':
      return { ...subject, kind, amount, validityDays, onActive: 'refuse' };
    case 'stop-cycle':
      return { ...subject, kind };
  }
}

const FAULTS: Readonly<Record<FaultCode, string>> = {
  Overloaded: 'Too much is going on. Nothing was changed: try again in a moment.',
  StoreUnavailable: 'The store cannot be reached. Nothing was changed: try again in a moment.',
  OutcomeUnknown: 'It is not known whether this happened. Send this form again as it is: it is done once.',
  Internal: 'Scrip failed, and writes no more until its operator has looked. The reason is in its log.',
};

/** What is wrong, by field. */
export function faultErrors({ code }: StoreFault): Readonly<Record<string, string>> {
  return { [WHOLE_FORM]: FAULTS[code] };
}

/** What is wrong, by field; null when nothing is. */
export function refusalErrors(outcome: Outcome): Readonly<Record<string, string>> | null {
  switch (outcome.refused) {
    case null:
      return null;
    case 'InsufficientFunds':
      return { amount: `${thereAre(outcome.available)} Nothing was subtracted.` };
    case 'BalanceTooLarge':
      return { amount: `${roomFor(outcome.available)} Nothing was added.` };
    case 'CycleAlreadyActive':
      return { [WHOLE_FORM]: 'A cycle is active already. Stop it before you start another.' };
    case 'CycleNotFound':
      return { [WHOLE_FORM]: 'There is no cycle to stop.' };
    case 'IdempotencyKeyReused':
      return {
        [WHOLE_FORM]: 'This form was sent before with other values, and that is what was done. Look at it below.',
      };
  }
}

function thereAre(available: number): string {
  if (available === 0) return 'There are no credits.';
  return `There ${available === 1 ? 'is' : 'are'} only ${creditsOf(available)}.`;
}

function roomFor(available: number): string {
  return available === 0 ? 'There is room for no more credits.' : `There is room for ${creditsOf(available)} more.`;
}
