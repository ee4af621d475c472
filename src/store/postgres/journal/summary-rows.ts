// Converts the summaries of end users to rows and back. A row also stores the progress of event derivation.

import type { Instant } from '../../../ledger/instant.ts';
import type { Summary } from '../../end-user-summaries.ts';
import type { Derivation, EventState } from '../../event-log.ts';
import { stateOfText, stateText } from '../../state-text.ts';
import { exactInteger, type TextRow, type Value } from '../pool/connection.ts';

export const SUMMARY_COLUMNS = 'derived_to, latest_grant, state, due_at, balance, expires_at, latest_activity';
export const SUMMARY_TYPES = ['bigint', 'bigint', 'text', 'bigint', 'bigint', 'bigint', 'bigint'];

export interface StoredSummary {
  readonly from: EventState;
  readonly balance: number;
  readonly latestActivity: Instant;
}

/** The values of `SUMMARY_COLUMNS`. */
export function summaryValues(
  { next, dueAt }: Pick<Derivation, 'next' | 'dueAt'>,
  { balance, expiresAt }: Summary,
  latestActivity: Instant,
): Value[] {
  const { at, latestGrant, state } = next;
  return [at, latestGrant, stateText(state, at), dueAt, balance, expiresAt, latestActivity];
}

/** @param row the columns of `SUMMARY_COLUMNS` */
export function storedSummaryOf([at, latestGrant, state, , balance, , latestActivity]: TextRow): StoredSummary {
  return {
    from: { at: exactInteger(at), latestGrant: exactInteger(latestGrant), state: stateOfText(state as string) },
    balance: exactInteger(balance),
    latestActivity: exactInteger(latestActivity),
  };
}
