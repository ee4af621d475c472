// Reads the event types that the user has checked in a form.

import type { FastifyRequest } from 'fastify';
import { EVENT_TYPES, type EventType } from '../../../store/event-log.ts';
import { TYPES_FIELD } from '../../pages/webhooks/event-types.ts';
import { formFields } from '../../request-reply.ts';
import type { FieldReading } from '../form-input.ts';

/** If no box is checked, returns an empty list, which means all types. */
export function readTypes(request: FastifyRequest): FieldReading<readonly EventType[]> {
  const chosen = formFields(request, TYPES_FIELD);
  const types = EVENT_TYPES.filter((type) => chosen.includes(type));
  if (new Set(chosen).size === types.length) return { value: types, error: null };
  return { value: null, error: 'Choose event types from this list.' };
}

/** Returns the checked types, separated by commas. A refused form is shown again with these types checked. */
export function enteredTypes(request: FastifyRequest): string {
  return formFields(request, TYPES_FIELD).join(',');
}
