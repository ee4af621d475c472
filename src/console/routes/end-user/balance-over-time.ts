// Computes the points of the balance chart: past points from stored states, future points from the current state.

import type { EndUserKey } from '../../../ledger/command.ts';
import { balanceAt } from '../../../ledger/history.ts';
import { balancePoints } from '../../../store/balance-points.ts';
import type { LedgerStore } from '../../../store/ledger-store.ts';
import type { LoadedEndUser } from '../../../store/loaded-end-user.ts';
import { type BalanceOverTime, chartInstants } from '../../charts/balance-chart.ts';

export async function readBalanceOverTime(
  ledger: Pick<LedgerStore, 'statesAt'>,
  user: EndUserKey,
  { state, now }: LoadedEndUser,
): Promise<BalanceOverTime> {
  const { past, future } = chartInstants(now);
  const { states } = await ledger.statesAt(user, past);
  const present = balanceAt(state, now);
  const projected = await balancePoints(future, Array(future.length).fill(state));
  return { past: [...(await balancePoints(past, states)), present], future: [present, ...projected] };
}
