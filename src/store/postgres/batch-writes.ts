// What a batch leaves behind, as statements. Most of what happens is that end users spend, each from one cycle: those
// changes, their postings and the movements of the batch are one statement, which is sent each value once.

import assert from 'node:assert/strict';
import type { QueryConfig } from 'pg';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Folded, UserChange } from '../../ledger/fold.ts';
import { type ChainHash, emptyHashChain, extend } from '../../ledger/hash-chain.ts';
import type { IdempotencyRecord } from '../../ledger/idempotency.ts';
import { movementsOf } from '../../ledger/movement.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { answerColumns } from './answer-rows.ts';
import { type Key, keyOf } from './key.ts';
import { movementRow } from './movements.ts';
import { RowArrays } from './row-arrays.ts';
import { query, type Statement, type Statements } from './statements.ts';

export interface Write {
  readonly query: QueryConfig;
  /** What the server has to say that it concerned. */
  readonly rowCount: number;
}

/** The end users of a batch, in their places. */
export interface BatchUsers {
  readonly keys: readonly Key[];
  /** The heads of their chains, as loaded: empty where there is no posting yet, null where no chain is kept. */
  readonly chains: readonly (ChainHash | null)[];
}

/** An end user who spent from one cycle, in one transaction, and nothing else. */
interface Spending {
  /** Where it stands in the batch. */
  readonly index: number;
  readonly after: Cycle;
  readonly posting: Posting;
}

/**
 * The writes of a batch, in their order; none when there is nothing to write.
 *
 * @param options whether chains are kept: who keeps none ends those that it finds
 */
export function writesOf(
  { changes, answers }: Folded,
  { keys, chains }: BatchUsers,
  statements: Statements,
  { isPrepared, isChained }: { isPrepared: boolean; isChained: boolean },
): Write[] {
  const { spend } = statements;
  const spending: Spending[] = [];
  const others: UserChange[] = [];
  for (const change of changes) {
    const one = spend === null ? null : spendingOf(change);
    if (one === null) others.push(change);
    else spending.push(one);
  }
  const chained = chainRows(changes, { keys, chains }, isChained, statements);
  const writes = [chained, ...rowsOf(others, keys, statements), answerRows(answers, statements)]
    .filter(({ rows }) => rows.count > 0)
    .map(({ statement, rows }) => ({
      query: query(statement, rows.literals(), isPrepared),
      rowCount: statement.isCounted ? 1 : rows.count,
    }));
  const moved = changes[0] === undefined ? null : movementRow(changes[0].user, movementsOf(changes));
  if (spend !== null && spending.length > 0) {
    assert(moved !== null, 'who spends moves credits');
    const { rows, createdAt } = spendingRows(spending, keys, spend);
    writes.push({ query: query(spend, [...rows.literals(), createdAt, ...moved], isPrepared), rowCount: 1 });
  } else if (moved !== null) {
    writes.push({ query: query(statements.insertMovements, [...moved], isPrepared), rowCount: 1 });
  }
  return writes;
}

function spendingOf({ index, changed, opened, postings }: UserChange): Spending | null {
  const [change] = changed;
  const [posting] = postings;
  if (change === undefined || posting === undefined) return null;
  if (changed.length + opened.length + postings.length > 2) return null;
  const isPlain = posting.kind === 'subtract' && posting.note === null;
  return isPlain ? { index, after: change.after, posting } : null;
}

function spendingRows(spending: readonly Spending[], keys: readonly Key[], spend: Statement) {
  const rows = new RowArrays(spend.types);
  let createdAt: number | null = null;
  for (const { index, after, posting } of spending) {
    assert(posting.cycleId === after.id && posting.expiresAt === after.end, 'it is spent from the cycle that changes');
    assert(createdAt === null || createdAt === posting.createdAt, 'a batch has one instant');
    createdAt = posting.createdAt;
    const { transactionId, amount, actor } = posting;
    rows.add(...(keys[index] as Key), after.end, after.id, after.period, after.remaining, transactionId, amount, actor);
  }
  return { rows, createdAt };
}

function rowsOf(changes: readonly UserChange[], keys: readonly Key[], statements: Statements) {
  const { updateCycles, insertCycles, insertPostings } = statements;
  const changed = new RowArrays(updateCycles.types);
  const opened = new RowArrays(insertCycles.types);
  const posted = new RowArrays(insertPostings.types);
  for (const change of changes) {
    const key = keys[change.index] as Key;
    const latest = change.postings.at(-1)?.transactionId as TransactionId;
    for (const { after } of change.changed)
      changed.add(...key, after.end, after.id, after.remaining, after.status, latest);
    for (const cycle of change.opened) opened.add(...key, ...cycleColumns(cycle), latest);
    for (const posting of change.postings) posted.add(...key, ...postingColumns(posting));
  }
  // Changes before openings: a renewed period makes room in the index of active cycles for the next one.
  return [
    { statement: updateCycles, rows: changed },
    { statement: insertCycles, rows: opened },
    { statement: insertPostings, rows: posted },
  ];
}

/** None where no chain was found, so that a ledger without chains is not written to for their sake. */
function chainRows(
  changes: readonly UserChange[],
  { keys, chains }: BatchUsers,
  isChained: boolean,
  { updateChains }: Statements,
) {
  const rows = new RowArrays(updateChains.types);
  for (const { index, user, postings } of changes) {
    const chain = chains[index] ?? null;
    if (chain === null) continue;
    // A chain that misses a posting would prove nothing, so it ends rather than stand still.
    rows.add(...(keys[index] as Key), isChained ? extend(chain === '' ? emptyHashChain(user) : chain, postings) : null);
  }
  return { statement: updateChains, rows };
}

function answerRows(answers: readonly IdempotencyRecord[], { insertAnswers }: Statements) {
  const rows = new RowArrays(insertAnswers.types);
  for (const answer of answers) rows.add(...keyOf(answer), ...answerColumns(answer));
  return { statement: insertAnswers, rows };
}

function cycleColumns({ id, period, type, status, amount, remaining, start, end, validityDays }: Cycle) {
  return [id, period, type, status, amount, remaining, start, end, validityDays] as const;
}

function postingColumns(posting: Posting) {
  const { transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note } = posting;
  return [transactionId, cycleId, period, kind, amount, createdAt, expiresAt, actor, note] as const;
}
