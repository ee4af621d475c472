// A draft is a random command with placeholders, such as "the whole balance" or "an open hold". This file replaces the
// placeholders with values from the reference model.

import { MOST } from './model-end-user.ts';
import type { ModelCommand, ModelUser, ModelValidity } from './model-types.ts';
import type { ReferenceLedger } from './reference-model.ts';

export type Wanted = number | { readonly what: Limit; readonly more: 0 | 1 };

type Limit = 'balance' | 'room' | 'available' | 'held' | 'held and balance' | 'refundable';

/** A number below `FITTING` selects a hold or transaction for which the command can succeed, if one exists. */
export type Which = number;
const FITTING = 12;
export const WHICH_MAX = 15;

export type StartDraft = { readonly note: string | null } & ModelValidity & {
    readonly kind: 'start-cycle';
    readonly amount: Wanted;
    readonly rolloverMax: number;
    readonly onActive: 'refuse' | 'replace' | 'at_period_end';
  };

export type Draft = { readonly note: string | null } & (
  | ({ readonly kind: 'add'; readonly amount: Wanted } & ModelValidity)
  | { readonly kind: 'subtract'; readonly amount: Wanted }
  | StartDraft
  | { readonly kind: 'stop-cycle' }
  | { readonly kind: 'hold'; readonly amount: Wanted; readonly expiresInSeconds: number }
  | { readonly kind: 'capture'; readonly hold: Which; readonly amount: Wanted | null }
  | { readonly kind: 'release'; readonly hold: Which }
  | {
      readonly kind: 'refund';
      readonly of: Which;
      readonly amount: Wanted | null;
      readonly validityDays: number | null;
    }
);

const UNKNOWN = '019bc0de-0000-4000-8000-000000000000';

export class Drafts {
  readonly #model: ReferenceLedger;
  readonly #ids: string[] = [];
  readonly #available = new Map<ModelUser, number>();

  constructor(model: ReferenceLedger) {
    this.#model = model;
  }

  refused(user: ModelUser, available: number): void {
    this.#available.set(user, available);
  }

  accepted(id: string): void {
    this.#ids.push(id);
  }

  someId(which: Which): string {
    return this.#ids.at(-1 - (which % (this.#ids.length + 1))) ?? UNKNOWN;
  }

  commandOf(user: ModelUser, draft: Draft): ModelCommand {
    const request = { ...user, actor: `key:${user.account}`, note: draft.note };
    switch (draft.kind) {
      case 'stop-cycle':
        return { ...request, ...draft };
      case 'capture': {
        const holdId = this.#hold(user, draft.hold);
        return { ...request, kind: draft.kind, holdId, amount: this.#amountOf(user, draft.amount, holdId) };
      }
      case 'release':
        return { ...request, kind: draft.kind, holdId: this.#hold(user, draft.hold) };
      case 'refund': {
        const { kind, of, validityDays } = draft;
        const transactionId = this.#pick(this.#model.spentBy(user), of);
        const amount = this.#amountOf(user, draft.amount, transactionId);
        return { ...request, kind, transactionId, amount, validityDays };
      }
      default:
        return { ...request, ...draft, amount: this.#amountOf(user, draft.amount, null) as number };
    }
  }

  startOf(user: ModelUser, draft: StartDraft): Extract<ModelCommand, { kind: 'start-cycle' }> {
    return this.commandOf(user, draft) as Extract<ModelCommand, { kind: 'start-cycle' }>;
  }

  #hold(user: ModelUser, which: Which): string {
    return this.#pick(
      this.#model.peekBalance(user).holds.map(({ id }) => id),
      which,
    );
  }

  #pick(fitting: readonly string[], which: Which): string {
    if (which >= FITTING || fitting.length === 0) return this.someId(which);
    return fitting.at(-1 - (which % fitting.length)) as string;
  }

  #amountOf(user: ModelUser, wanted: Wanted | null, of: string | null): number | null {
    if (typeof wanted === 'number' || wanted === null) return wanted;
    return Math.min(Math.max(this.#limitOf(user, wanted.what, of) + wanted.more, 1), MOST);
  }

  #limitOf(user: ModelUser, what: Limit, of: string | null): number {
    const { balance, held, holds } = this.#model.peekBalance(user);
    const heldByIt = holds.find(({ id }) => id === of)?.amount ?? 0;
    switch (what) {
      case 'balance':
        return balance;
      case 'room':
        return MOST - balance - held;
      case 'available':
        return this.#available.get(user) ?? 0;
      case 'held':
        return heldByIt;
      case 'held and balance':
        return heldByIt + balance;
      case 'refundable':
        return of === null ? 0 : (this.#model.refundable(user, of) ?? 0);
    }
  }
}
