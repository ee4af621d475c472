// The hash chain over the postings of one end user: each transaction is hashed together with the hash before it, so the
// last hash stands for all of them in their order. Changing, removing or inserting a posting changes every hash from
// there on. There is no secret in it: it proves something only against a digest that is kept elsewhere.

import { hash } from 'node:crypto';
import type { EndUserKey } from './command.ts';
import type { Posting } from './posting.ts';

/** A SHA-256 in base64url, 43 characters. For an end user without postings it is a text that names the end user. */
export type ChainHash = string;

/** No two end users have a chain in common: postings that are moved from one to the other are found. */
export function emptyHashChain({ account, endUser }: EndUserKey): ChainHash {
  return `scrip ${account} ${endUser}`;
}

/**
 * Adds whole transactions to a hash chain.
 *
 * @param postings oldest first, those of one transaction side by side
 */
export function extendHashChain(previous: ChainHash, postings: readonly Posting[]): ChainHash {
  let current = previous;
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
function linked(previous: ChainHash, transaction: Posting[]): ChainHash {
  let text = previous;
  if (transaction.length > 1) transaction.sort(byCycle);
  for (const posting of transaction) text += encoded(posting);
  return hash('sha256', text, 'base64url');
}

/** Stores keep no order among the postings of one transaction. */
function byCycle(a: Posting, b: Posting): number {
  if (a.cycleId !== b.cycleId) return a.cycleId < b.cycleId ? -1 : 1;
  return a.period - b.period;
}

/** No two postings have the same text: only the last two fields may have spaces, and the lengths of both are in it. */
function encoded(posting: Posting): string {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note, terms } = posting;
  const opens = terms === null ? '-' : `${terms.type}/${terms.validityDays}`;
  const noteLength = note === null ? '-' : note.length;
  const what = `${transactionId} ${cycleId} ${period} ${kind} ${amount} ${createdAt} ${expiresAt} ${opens}`;
  return `\n${what} ${actor.length} ${noteLength} ${actor}${note ?? ''}`;
}
