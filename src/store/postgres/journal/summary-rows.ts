// Converts the summaries of end users to rows and back. A row also stores the progress of event derivation.

import type { Instant } from '../../../ledger/instant.ts';
import type { Summary } from '../../end-user-summaries.ts';
import type { Derivation, EventState } from '../../event-log.ts';
import { stateOfText, stateText } from '../../state-text.ts';
import { exactInteger, type TextRow, type Value } from '../pool/connection.ts';

export const SUMMARY_COLUMNS =
  'derived_to, latest_grant, expiring_days, state, due_at, balance, expires_at, latest_activity';
export const SUMMARY_TYPES = ['bigint', 'bigint', 'integer', 'text', 'bigint', 'bigint', 'bigint', 'bigint'];

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
  const { at, latestGrant, expiringDays, state } = next;
  return [at, latestGrant, expiringDays, stateText(state, at), dueAt, balance, expiresAt, latestActivity];
}

/** @param row the columns of `SUMMARY_COLUMNS` */
export function storedSummaryOf(row: TextRow): StoredSummary {
  const [at, latestGrant, expiringDays, state, , balance, , latestActivity] = row;
  return {
    from: {
      at: exactInteger(at),
      latestGrant: exactInteger(latestGrant),
      expiringDays: exactInteger(expiringDays),
      state: stateOfText(state as string),
    },
    balance: exactInteger(balance),
    latestActivity: exactInteger(latestActivity),
  };
}
