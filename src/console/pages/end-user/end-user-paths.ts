// The paths of an end user's pages.

import type { TransactionId } from '../../../ledger/transaction-id.ts';

export function endUserPath(endUser: string): string {
  return `/console/end-users/${endUser}`;
}

export function transactionPath(endUser: string, id: TransactionId): string {
  return `${endUserPath(endUser)}/transactions/${id}`;
}
