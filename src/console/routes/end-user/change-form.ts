// Turns a form that changes an end user's credits into a command. An invalid value becomes a field error.

import type { FastifyRequest } from 'fastify';
import type { EndUserKey, OnActive, SeenCycle, WriteCommand } from '../../../ledger/command.ts';
import type { Plan } from '../../../ledger/plan.ts';
import { type Actor, NOTE_LENGTH_MAX, type Note } from '../../../ledger/posting.ts';
import type { TransactionId } from '../../../ledger/transaction-id.ts';
import type { Adjustment } from '../../pages/end-user/adjust-forms.ts';
import { SEEN, seenOf } from '../../pages/end-user/plan-change.ts';
import type { TransactionAction } from '../../pages/end-user/transaction.ts';
import type { FormState } from '../../pages/form-field.ts';
import { formField } from '../../request-reply.ts';
import {
  type FieldReading,
  readAmount,
  readDays,
  readLine,
  readOptional,
  readRolloverMax,
  readValidity,
} from '../form-input.ts';

type ChangeForm =
  | { readonly kind: Adjustment }
  | { readonly kind: TransactionAction; readonly transactionId: TransactionId };

interface Subject extends EndUserKey {
  readonly actor: Actor;
}

interface SentForm {
  readonly state: FormState;
  /** Null if the form has errors. */
  readonly command: WriteCommand | null;
}

export function readChange(form: ChangeForm, request: FastifyRequest, subject: Subject): SentForm {
  const values = {
    amount: formField(request, 'amount'),
    validity: formField(request, 'validity'),
    unit: formField(request, 'unit'),
    /** Only the refund form has this field. Its unit is always days. */
    validity_days: formField(request, 'validity_days'),
    rollover_max: formField(request, 'rollover_max'),
    on_active: formField(request, 'on_active'),
    note: formField(request, 'note'),
  };
  const { kind } = form;
  const isGrant = kind === 'add' || kind === 'start-cycle';
  const readings = {
    amount: kind === 'stop-cycle' || kind === 'release' ? null : readAmount(values.amount),
    validity: isGrant ? readValidity(values.validity, values.unit) : null,
    validity_days: kind === 'refund' ? readOptional(values.validity_days, readDays) : null,
    rollover_max: kind === 'start-cycle' ? readRolloverMax(values.rollover_max) : null,
    note: readLine(values.note, NOTE_LENGTH_MAX),
  } satisfies Record<string, FieldReading<unknown> | null>;
  const errors = Object.fromEntries(Object.entries(readings).map(([name, reading]) => [name, reading?.error ?? null]));
  const state = { values, errors };
  if (Object.values(errors).some((error) => error !== null)) return { state, command: null };
  const fields = {
    amount: readings.amount?.value ?? 0,
    validityDays: readings.validity?.value?.validityDays ?? readings.validity_days?.value ?? null,
    validityMonths: readings.validity?.value?.validityMonths ?? null,
    rolloverMax: readings.rollover_max?.value ?? 0,
    onActive: onActiveOf(values.on_active),
    seen: seenOf(formField(request, SEEN)),
    note: readings.note.value,
  };
  return { state, command: commandOf(form, fields, subject) };
}

/** If no cycle was active when the form was loaded, the form has no `on_active` field. */
function onActiveOf(text: string): OnActive {
  return text === 'replace' || text === 'at_period_end' ? text : 'refuse';
}

interface Fields extends Plan {
  readonly onActive: OnActive;
  readonly seen: SeenCycle | null;
  readonly note: Note | null;
}

function commandOf(form: ChangeForm, fields: Fields, subject: Subject): WriteCommand {
  const { amount, validityDays, validityMonths, rolloverMax, onActive, seen, note } = fields;
  const request = { ...subject, note };
  switch (form.kind) {
    case 'add':
      return { ...request, kind: 'add', amount, validityDays, validityMonths };
    case 'subtract':
      return { ...request, kind: 'subtract', amount };
    case 'start-cycle':
      return { ...request, kind: 'start-cycle', amount, validityDays, validityMonths, rolloverMax, onActive, seen };
    case 'stop-cycle':
      return { ...request, kind: 'stop-cycle' };
    case 'refund':
      return { ...request, kind: 'refund', transactionId: form.transactionId, amount, validityDays };
    case 'release':
      return { ...request, kind: 'release', holdId: form.transactionId };
  }
}
