// The balance of an end user over time, as a JSON document.

import type { EndUserKey } from '../../ledger/command.ts';
import { type Interval, POINTS_MAX, pointsBetween } from '../../ledger/history.ts';
import { addMonths, DAY_MS, type Instant } from '../../ledger/instant.ts';
import { balancePoints } from '../../store/balance-points.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { invalidField } from '../problems.ts';
import type { BalanceHistoryQuery } from './calls/balances.ts';
import { balanceMembers, timestamp } from './replies.ts';
import type { InTurn } from './transaction-list.ts';

/** @throws InvalidRequest if `from` is later than `to`, or if there would be more than `POINTS_MAX` points */
export async function balanceHistory(
  ledger: Pick<LedgerStore, 'load' | 'statesAt'>,
  user: EndUserKey,
  query: BalanceHistoryQuery,
  inTurn: InTurn,
): Promise<readonly string[]> {
  const { interval = 'day' } = query;
  const to = query.to === undefined ? (await ledger.load(user)).now : Date.parse(query.to);
  const from = query.from === undefined ? defaultFrom(to, interval) : Date.parse(query.from);
  if (from > to) {
    const message = `must not be later than \`to\`${query.to === undefined ? ', which defaults to now' : ''}`;
    throw invalidField('/from', message);
  }
  const instants = pointsBetween(from, to, interval);
  if (instants === null) {
    const message = `gives more than ${POINTS_MAX} points between \`from\` and \`to\`; use a longer interval or a shorter range`;
    throw invalidField('/interval', message);
  }
  const { states } = await inTurn(() => ledger.statesAt(user, instants));
  const points = (await balancePoints(instants, states)).map(
    ({ at, balance, held }) => `{"at":"${timestamp(at)}",${balanceMembers(balance, held)}}`,
  );
  return [`{"end_user_id":"${user.endUser}","points":[`, points.join(','), ']}'];
}

function defaultFrom(to: Instant, interval: Interval): Instant {
  switch (interval) {
    case 'hour':
      return Math.max(0, to - DAY_MS);
    case 'day':
      return Math.max(0, to - 30 * DAY_MS);
    case 'month':
      return Math.max(0, addMonths(to, -12));
  }
}
