// The chain over the postings of one end user: each transaction is hashed together with the hash before it, so that
// the last one, the head, stands for all of them in their order. Whoever changes, takes out or puts in a posting changes
// every head from there on. There is no secret in it: it proves something against a head that is kept elsewhere.

import { hash } from 'node:crypto';
import type { EndUserKey } from './command.ts';
import type { Posting } from './posting.ts';

/** A SHA-256 in base64url, 43 characters. The head of no posting at all names the end user instead. */
export type ChainHash = string;

/** No two end users have a chain in common: postings that are moved from one to the other are found. */
export function emptyHashChain({ account, endUser }: EndUserKey): ChainHash {
  return `scrip ${account} ${endUser}`;
}

/**
 * Adds whole transactions to a chain.
 *
 * @param postings those of one transaction side by side, from the first transaction to the latest
 */
export function extend(head: ChainHash, postings: readonly Posting[]): ChainHash {
  let current = head;
  for (let start = 0; start < postings.length; ) {
    const { transactionId } = postings[start] as Posting;
    let end = start + 1;
    while (postings[end]?.transactionId === transactionId) end++;
    current = linked(current, postings.slice(start, end));
    start = end;
  }
  return current;
}

/** @param transaction the postings of one */
function linked(head: ChainHash, transaction: Posting[]): ChainHash {
  let text = head;
  if (transaction.length > 1) transaction.sort(byCycle);
  for (const posting of transaction) text += encoded(posting);
  return hash('sha256', text, 'base64url');
}

/** Stores keep no order among the postings of one transaction. */
function byCycle(a: Posting, b: Posting): number {
  if (a.cycleId !== b.cycleId) return a.cycleId < b.cycleId ? -1 : 1;
  return a.period - b.period;
}

/** One text for one posting, and another for any other: only the last two fields are free, and the length of one is told. */
function encoded(posting: Posting): string {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
  const free = note === null ? actor : `${actor}${note}`;
  const noteLength = note === null ? '-' : note.length;
  return `\n${transactionId} ${cycleId} ${period} ${kind} ${amount} ${createdAt} ${expiresAt} ${actor.length} ${noteLength} ${free}`;
}
