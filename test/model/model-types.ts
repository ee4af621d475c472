// The inputs and results of the reference model: commands, outcomes, balances and transactions.

import type { Happened } from './model-end-user.ts';

export interface ModelUser {
  readonly account: number;
  readonly endUser: string;
}

/** Exactly one member is null. */
export interface ModelValidity {
  readonly validityDays: number | null;
  readonly validityMonths: number | null;
}

export interface ModelPlan extends ModelValidity {
  readonly amount: number;
  readonly rolloverMax: number;
}

export type ModelCommand = ModelUser & { readonly actor: string; readonly note?: string | null } & (
    | ({ readonly kind: 'add'; readonly amount: number } & ModelValidity)
    | { readonly kind: 'subtract'; readonly amount: number }
    | ({ readonly kind: 'start-cycle'; readonly onActive: 'refuse' | 'replace' | 'at_period_end' } & ModelPlan)
    | { readonly kind: 'stop-cycle' }
    | { readonly kind: 'hold'; readonly amount: number; readonly expiresInSeconds: number }
    | { readonly kind: 'capture'; readonly holdId: string; readonly amount: number | null }
    | { readonly kind: 'release'; readonly holdId: string }
    | {
        readonly kind: 'refund';
        readonly transactionId: string;
        readonly amount: number | null;
        readonly validityDays: number | null;
      }
  );

export interface ModelCycle {
  readonly type: 'one-time' | 'recurring';
  readonly status: 'active' | 'canceled';
  readonly amount: number;
  readonly spendable: number;
  readonly held: number;
  readonly createdAt: number;
  readonly start: number;
  readonly end: number;
  readonly validityMonths: number | null;
  readonly rolloverMax: number;
  readonly next: (ModelPlan & { readonly startsAt: number }) | null;
}

export interface ModelPreview {
  readonly refused: null;
  readonly startsAt: number;
  readonly entries: readonly ModelCycle[];
  readonly balance: number;
  readonly balanceAtStart: number;
  readonly expiring: number;
}

export interface ModelHoldResult {
  readonly id: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly status: 'open' | 'captured' | 'released';
  readonly amount: number;
  readonly captured: number;
  readonly returned: number;
  readonly expired: number;
}

export interface ModelAccepted {
  readonly refused: null;
  readonly transactionId: string | null;
  readonly cycle?: ModelCycle;
  readonly hold?: ModelHoldResult;
  readonly refund?: { readonly restored: number; readonly expired: number };
}

export type ModelRefused =
  | {
      readonly refused: 'InsufficientFunds' | 'BalanceTooLarge';
      readonly requested: number;
      readonly available: number;
    }
  | { readonly refused: 'CycleAlreadyActive'; readonly cycle: ModelCycle }
  | { readonly refused: 'RefundTooLarge'; readonly requested: number | null; readonly refundable: number }
  | { readonly refused: 'CycleNotFound' | 'HoldNotFound' | 'TooManyHolds' | 'TransactionNotFound' | 'NotRefundable' };

export type ModelOutcome = ModelAccepted | ModelRefused;

/** `refundable` is null if the transaction spent no credits. */
export interface ModelHistoryEntry extends Happened {
  readonly refundable: number | null;
}

export interface ModelOpenHold {
  readonly id: string;
  readonly amount: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface ModelBalance {
  readonly balance: number;
  readonly held: number;
  /** Oldest first. */
  readonly entries: readonly ModelCycle[];
  readonly holds: readonly ModelOpenHold[];
}
