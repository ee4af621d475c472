// Builds and sends responses. Timestamps are in UTC with milliseconds and end in `Z`, except `created_at` of a cycle
// object, which has no suffix. For speed, the most common objects are built without JSON.stringify. Their values are
// numbers, UUIDs, timestamps and fixed words, which need no escapes. Large documents are sent in pieces, to limit
// memory use and to detect whether a slow client is still reading.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Amount } from '../../ledger/amount.ts';
import type { Add, Subtract } from '../../ledger/command.ts';
import { type Cycle, createdAt, spendable } from '../../ledger/cycle.ts';
import type { BalancePoint } from '../../ledger/history.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../ledger/instant.ts';
import type { Plan } from '../../ledger/plan.ts';
import type { Transaction } from '../../ledger/posting.ts';
import { connectionOf } from '../admission/connections.ts';
import type { FairShare } from '../admission/fair-share.ts';
import { LARGE_ANSWER_BYTES } from '../limits.ts';
import { sendProblem } from '../problem-reply.ts';
import type { CycleObject } from './calls/cycles.ts';

/** The memory that a streamed list takes: one page, and the socket's buffer. */
export const STREAM_BYTES = 2 * LARGE_ANSWER_BYTES;

export function sendJson(reply: FastifyReply, document: string | Readable): void {
  reply.header('content-type', 'application/json; charset=utf-8').send(document);
}

export function sendPieces(unsent: FairShare, reply: FastifyReply, pieces: readonly string[]): void {
  const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  if (bytes < LARGE_ANSWER_BYTES) sendJson(reply, pieces.join(''));
  else if (hold(unsent, bytes, reply))
    sendJson(reply.header('content-length', bytes), Readable.from(pieces, { objectMode: false }));
  else sendProblem(reply, 'Overloaded');
}

/** The request counts as in flight until the whole document is sent. */
export function sendStream(
  { unsent, inFlight }: { readonly unsent: FairShare; readonly inFlight: FairShare },
  reply: FastifyReply,
  stream: Readable,
): void {
  const { request } = reply;
  const { account } = request.caller;
  if (!hold(unsent, STREAM_BYTES, reply)) {
    stream.destroy();
    sendProblem(reply, 'Overloaded');
    return;
  }
  request.endsWithResponse = false;
  stream.once('close', () => inFlight.release(account, 1));
  stream.once('error', (error) => {
    if (!connectionOf(request.raw.socket).isDisconnected) request.log.error({ err: error }, 'streaming a list failed');
  });
  const isHead = request.method === 'HEAD';
  if (isHead) stream.destroy();
  sendJson(reply, isHead ? Readable.from([]) : stream);
}

/**
 * Counts the bytes of a large response toward `unsentBytesMax` until the response is sent or its client disconnects.
 *
 * @returns false if the response would exceed the limit. If no other large response is being sent, a response of any
 * size fits.
 */
function hold(unsent: FairShare, bytes: number, { raw: response, request }: FastifyReply): boolean {
  if (connectionOf(request.raw.socket).isDisconnected) return true;
  const { account } = request.caller;
  const counted = unsent.total === 0 ? Math.min(bytes, unsent.max / 2) : bytes;
  if (!unsent.hasRoom(account, counted)) return false;
  unsent.take(account, counted);
  response.once('close', () => unsent.release(account, counted));
  return true;
}

export function cycleObject(endUserId: string, cycle: Cycle): CycleObject {
  return {
    end_user_id: endUserId,
    amount: cycle.amount,
    created_at: timestamp(createdAt(cycle)).slice(0, -1),
    current_cycle_start: timestamp(cycle.start),
    current_cycle_end: timestamp(cycle.end),
    cycle_type: cycle.type,
    status: shownStatus(cycle),
    ...planMembers(cycle),
  };
}

type PlanMembers = Pick<CycleObject, 'validity_months' | 'rollover_max' | 'next_cycle'>;

function planMembers({ plan, next, end }: Cycle): PlanMembers {
  return { ...termMembers(plan), ...(next === null ? {} : { next_cycle: nextCycle(next.plan, end) }) };
}

function nextCycle(plan: Plan, startsAt: Instant) {
  const { amount, validityDays } = plan;
  const days = validityDays === null ? {} : { validity_days: validityDays };
  return { starts_at: timestamp(startsAt), amount, ...days, ...termMembers(plan) };
}

function termMembers({ validityMonths, rolloverMax }: Plan) {
  return {
    ...(validityMonths === null ? {} : { validity_months: validityMonths }),
    ...(rolloverMax === 0 ? {} : { rollover_max: rolloverMax }),
  };
}

export function movedText({ endUser, amount }: Add | Subtract): string {
  return `{"end_user_id":"${endUser}","amount":${amount}}`;
}

/** The number of cycles in one piece of a balance. A piece takes about 0.2 ms to write, and is about 50 kB long. */
const CYCLES_A_PIECE = 256;

/**
 * Writes a balance as JSON, in pieces. Other requests are processed between the pieces.
 *
 * @param cycles all cycles that have not ended, in spending order
 */
export function balancePieces(
  endUserId: string,
  cycles: readonly Cycle[],
  { balance, held }: Omit<BalancePoint, 'at'>,
): readonly string[] | Promise<readonly string[]> {
  const head = `{"end_user_id":"${endUserId}","active_balance_by_cycle":[`;
  const tail = `],${balanceMembers(balance, held)}}`;
  if (cycles.length <= CYCLES_A_PIECE) return [head + cycles.map(cycleEntryText).join(',') + tail];
  return longBalance(head, cycles, tail);
}

export function balanceMembers(balance: Amount, held: Amount): string {
  return held === 0 ? `"active_balance":${balance}` : `"active_balance":${balance},"held":${held}`;
}

async function longBalance(head: string, cycles: readonly Cycle[], tail: string): Promise<readonly string[]> {
  const pieces = [head];
  for (let from = 0; from < cycles.length; from += CYCLES_A_PIECE) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve));
    const text = cycles
      .slice(from, from + CYCLES_A_PIECE)
      .map(cycleEntryText)
      .join(',');
    pieces.push(from === 0 ? text : `,${text}`);
  }
  pieces.push(tail);
  return pieces;
}

/** The API shows a superseded cycle as canceled. */
function shownStatus({ status }: Cycle): 'active' | 'canceled' {
  return status === 'active' ? 'active' : 'canceled';
}

export function cycleEntryText(cycle: Cycle): string {
  const { start, end, amount, type, plan, next } = cycle;
  const isPlain = plan.validityMonths === null && plan.rolloverMax === 0 && next === null;
  const more = isPlain ? '' : `,${JSON.stringify(planMembers(cycle)).slice(1, -1)}`;
  return `{"cycle_start":"${timestamp(start)}","cycle_end":"${timestamp(end)}","amount":${spendable(cycle)},"starting_amount":${amount},"status":"${shownStatus(cycle)}","cycle_type":"${type}"${more}}`;
}

export function transactionText({ id, amount, createdAt, expiresAt }: Transaction): string {
  return `{"transaction_id":"${id}","amount":${amount},"created_at":"${timestamp(createdAt)}","expire_at":"${timestamp(expiresAt)}"}`;
}

/**
 * Caches formatted dates. The keys are days since 1970. The transactions of a list usually fall on a few days, and
 * `toISOString` takes six times as long as formatting with a cached date.
 */
const dates = new Map<number, string>();
const DATES_MAX = 4_096;
const SIXTY = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
const THOUSAND = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'));

/** Formats an instant exactly as `toISOString` does. */
export function timestamp(instant: Instant): string {
  const day = Math.floor(instant / DAY_MS);
  const ms = instant - day * DAY_MS;
  const hour = Math.floor(ms / HOUR_MS);
  const minute = Math.floor(ms / 60_000) % 60;
  const second = Math.floor(ms / 1_000) % 60;
  return `${dateOf(day)}${SIXTY[hour]}:${SIXTY[minute]}:${SIXTY[second]}.${THOUSAND[ms % 1_000]}Z`;
}

/** The date, followed by the letter `T`. */
function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  if (dates.size === DATES_MAX) dates.clear();
  const date = new Date(day * DAY_MS).toISOString().slice(0, '2026-11-20T'.length);
  dates.set(day, date);
  return date;
}
