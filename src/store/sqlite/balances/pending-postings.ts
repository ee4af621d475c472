// Tracks the pending postings of a ledger file for readers.

import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../../ledger/command.ts';
import { unflushedEndUsers } from './end-user-reader.ts';

/**
 * The latest posting of each end user whose stored balances might not include all postings yet. Readers follow the
 * links in the journal backward from the latest posting. Like the writer's cache, this class has two generations. When
 * the writer has flushed its old generation, `rotate` drops the old generation of this class too, and makes the young
 * generation the old one.
 */
export class PendingPostings {
  #young: PostingsByEndUser = new Map();
  #old: PostingsByEndUser = new Map();

  get({ account, endUser }: EndUserKey): number | null {
    return this.#young.get(account)?.get(endUser) ?? this.#old.get(account)?.get(endUser) ?? null;
  }

  set({ account, endUser }: EndUserKey, posting: number): void {
    const known = this.#young.get(account);
    if (known === undefined) this.#young.set(account, new Map([[endUser, posting]]));
    else known.set(endUser, posting);
  }

  rotate(): void {
    this.#old = this.#young;
    this.#young = new Map();
  }
}

type PostingsByEndUser = Map<number, Map<string, number>>;

export function pendingPostingsOf(db: DatabaseSync): PendingPostings {
  const pending = new PendingPostings();
  for (const [user, posting] of unflushedEndUsers(db)) pending.set(user, posting);
  return pending;
}
