// Derives events as the server does, and records the postings from which the events are derived.

import { deriveEvents } from '../../../src/events/derive.ts';
import type { Posting } from '../../../src/ledger/posting.ts';
import type { DeriveEvents } from '../../../src/store/event-log.ts';
import type { EndUser } from '../temporary-ledger.ts';

export class RecordedFeed {
  readonly calls: { readonly endUser: string; readonly account: number; readonly postings: readonly Posting[] }[] = [];
  isFailing = false;

  readonly derive: DeriveEvents = (input) => {
    const { user, postings } = input;
    if (postings.length > 0) this.calls.push({ ...user, postings: [...postings] });
    if (this.isFailing) throw new Error('the derivation failed');
    return deriveEvents(input);
  };

  get postings(): readonly Posting[] {
    return this.calls.flatMap(({ postings }) => postings);
  }

  /** A failed derivation is repeated with the same postings, so this method removes duplicates. */
  of({ key }: EndUser): readonly Posting[] {
    const own = this.calls.filter(({ account, endUser }) => account === key.account && endUser === key.endUser);
    const byName = own.flatMap(({ postings }) => postings.map((posting) => [nameOf(posting), posting] as const));
    return [...new Map(byName).values()];
  }
}

export function nameOf(posting: Pick<Posting, 'transactionId' | 'cycleId' | 'period' | 'amount'>): string {
  return [posting.transactionId, posting.cycleId, posting.period, posting.amount].join(' ');
}
