// Converts the event states of end users to rows and back.

import type { Derivation, EventState } from '../../event-log.ts';
import { stateOfText, stateText } from '../../state-text.ts';
import { exactInteger, type TextRow, type Value } from '../pool/connection.ts';

export const EVENT_STATE_COLUMNS = 'derived_to, latest_grant, state, due_at';
export const EVENT_STATE_TYPES = ['bigint', 'bigint', 'text', 'bigint'];

/** The values of `EVENT_STATE_COLUMNS`. */
export function eventStateValues({ at, latestGrant, state, dueAt }: EventState & Pick<Derivation, 'dueAt'>): Value[] {
  return [at, latestGrant, stateText(state, at), dueAt];
}

/** @param row the columns of `EVENT_STATE_COLUMNS` */
export function eventStateOf([at, latestGrant, state]: TextRow): EventState {
  return { at: exactInteger(at), latestGrant: exactInteger(latestGrant), state: stateOfText(state as string) };
}
