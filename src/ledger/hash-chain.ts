// The hash chain over one end user's postings. Each transaction is hashed together with the previous hash, so the
// last hash covers all transactions and their order. The chain contains no secret, so anyone who can change postings
// can also recompute the hashes. To detect such a change, compare the chain with a digest that is stored elsewhere.

import { hash } from 'node:crypto';
import type { EndUserKey } from './command.ts';
import { type Posting, termsText } from './posting.ts';

/** A SHA-256 hash in base64url (43 characters), or the start of the chain, which `emptyHashChain` returns. */
export type ChainHash = string;

/**
 * The start of the chain, which is different for each end user. Moving postings to another end user therefore changes
 * the hashes.
 */
export function emptyHashChain({ account, endUser }: EndUserKey): ChainHash {
  return `scrip ${account} ${endUser}`;
}

/**
 * @param postings oldest first; the postings of one transaction are adjacent, in the order in which they were written
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

/** @param transaction all postings of one transaction */
function linked(previous: ChainHash, transaction: readonly Posting[]): ChainHash {
  let text = previous;
  for (const posting of transaction) text += encoded(posting);
  return hash('sha256', text, 'base64url');
}

/**
 * Encodes a posting as unambiguous text: only the last two fields can contain spaces, and the text includes the lengths
 * of these two fields.
 */
function encoded(posting: Posting): string {
  const { transactionId, cycleId, period, kind, amount, held, createdAt, expiresAt, actor, note, terms } = posting;
  const opens = terms === null ? '-' : termsText(terms);
  const noteLength = note === null ? '-' : note.length;
  const what = `${transactionId} ${cycleId} ${period} ${kind} ${amount} ${held} ${createdAt} ${expiresAt} ${opens}`;
  const holds = `${posting.reference ?? '-'} ${posting.holdExpiresAt ?? '-'}`;
  return `\n${what} ${holds} ${actor.length} ${noteLength} ${actor}${note ?? ''}`;
}
