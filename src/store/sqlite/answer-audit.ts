// Whether the answers to idempotency keys in a ledger file are whole: each can be read, belongs to somebody, and is found by
// its key.

import { AssertionError } from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { AnswerHash } from './answer-hash.ts';
import { AnswerSegments, bucketOf } from './answer-segments.ts';
import { SlipReads } from './answer-slip-reads.ts';
import { spread } from './hash-mixing.ts';

/** Findings that are told. */
const FAULTS_MAX = 20;

export function answerFaults(db: DatabaseSync): string[] {
  const faults: string[] = [];
  const fault = (sentence: string) => void (faults.length < FAULTS_MAX && faults.push(sentence));
  const segments = new AnswerSegments(db, 0);
  const onSlips = auditSlips(db, segments.coveredSlip, fault);
  const inSegments = auditSegments(segments, onSlips.firstSlip, fault);
  if (onSlips.sum !== inSegments) fault('the index of the answers to idempotency keys is not what the answers say');
  return faults;
}

/** @returns the first slip, and what all that segments should know of adds up to */
function auditSlips(db: DatabaseSync, coveredSlip: number, fault: (sentence: string) => void) {
  const slips = new SlipReads(db);
  const hash = new AnswerHash(db);
  let firstSlip = Number.POSITIVE_INFINITY;
  let sum = 0;
  for (const { slip, answers, entries } of slips.behind(0)) {
    firstSlip = Math.min(firstSlip, slip);
    const isRead = told(`the answers to idempotency keys in slip ${slip}`, fault, () => {
      let read = 0;
      for (const { hash: stored, ...answer } of slips.on(entries)) {
        read += 1;
        if (slip <= coveredSlip) sum = (sum + fingerprint(stored, slip)) | 0;
        if (hash.of(answer, answer.key) !== stored) fault(`an answer in slip ${slip} is not found by its key`);
      }
      return read;
    });
    if (isRead !== null && isRead !== answers) fault(`slip ${slip} says ${answers} answers, and has ${isRead}`);
  }
  return { firstSlip, sum };
}

/** @returns what all that they know of adds up to */
function auditSegments(segments: AnswerSegments, firstSlip: number, fault: (sentence: string) => void): number {
  let sum = 0;
  for (const segment of segments.whole)
    told(`the index of the answers to idempotency keys (segment ${segment.id})`, fault, () => {
      for (let bucket = 0; bucket < segment.buckets; bucket++)
        segments.takeBucket(segment, bucket, (hash, slip) => {
          if (slip < firstSlip) return;
          sum = (sum + fingerprint(hash, slip)) | 0;
          if (bucketOf(hash, segment.buckets) !== bucket) fault(`bucket ${bucket} of segment ${segment.id} has others`);
        });
    });
  return sum;
}

function fingerprint(hash: number, slip: number): number {
  const mixed = spread(hash ^ slip);
  return spread(mixed ^ (mixed >>> 15) ^ hash);
}

/** Null where what is read breaks off. */
function told<Result>(what: string, fault: (sentence: string) => void, read: () => Result): Result | null {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AssertionError || error instanceof RangeError)) throw error;
    fault(`${what} cannot be read: ${error.message}`);
    return null;
  }
}
