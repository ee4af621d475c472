// What the chains of a ledger come to, as the one line in which an operator keeps it: printed by `scrip digest`, read by
// `scrip verify`.

import { instantOf, type TransactionId } from '../ledger/transaction-id.ts';

/** What all postings up to one come to. */
export interface PostingsDigest {
  /** Of any transaction later than these, the id sorts behind this one. */
  readonly through: TransactionId;
  /** Those that have postings. */
  readonly endUsers: number;
  readonly postings: number;
  readonly sha256: string;
}

export interface LedgerProof {
  /** One for each of the positions that were asked for, in their order. */
  readonly digests: readonly PostingsDigest[];
  readonly endUsers: number;
  /** Those of whom a head is stored beside their postings. */
  readonly chained: number;
}

const LINE =
  /^scrip-digest-1 at=(?<at>\S+) end_users=(?<endUsers>\d{1,15}) postings=(?<postings>\d{1,15}) through=(?<through>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}) sha256=(?<sha256>[0-9a-f]{64})$/;

/** More would be read at once than anybody keeps: one an hour for a year. */
const LINES_MAX = 10_000;

export function lineOf({ through, endUsers, postings, sha256 }: PostingsDigest): string {
  const at = instantText(through);
  return `scrip-digest-1 at=${at} end_users=${endUsers} postings=${postings} through=${through} sha256=${sha256}`;
}

export function instantText(through: string): string {
  return new Date(instantOf(through)).toISOString();
}

/** @returns the digests of a text, one a line; null when it is anything else */
export function digestsIn(text: string): readonly PostingsDigest[] | null {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (lines.length === 0 || lines.length > LINES_MAX) return null;
  const digests = lines.map(digestOf);
  return digests.every((digest) => digest !== null) ? digests : null;
}

function digestOf(line: string): PostingsDigest | null {
  const found = LINE.exec(line.trim())?.groups as Record<string, string> | undefined;
  if (found === undefined) return null;
  const { at, through, sha256 } = found as { at: string; through: string; sha256: string };
  if (at !== instantText(through)) return null;
  return { through, endUsers: Number(found.endUsers), postings: Number(found.postings), sha256 };
}
