// An end user of the reference model: grants of credits, holds and transactions.

import { DAY, monthsAfter } from './model-calendar.ts';
import type { ModelPlan } from './model-types.ts';

export const MOST = 2 ** 53 - 1;
export const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** An addition, or one period of a recurring cycle. */
export interface Grant {
  readonly type: 'one-time' | 'recurring';
  /** Includes credits that rolled over from the previous period. */
  readonly amount: number;
  readonly plan: ModelPlan;
  /** `id` is the ID of the transaction that scheduled the plan. */
  next: { readonly id: string; readonly plan: ModelPlan } | null;
  /** The start of the first period. */
  readonly createdAt: number;
  readonly start: number;
  readonly end: number;
  /** Excludes held credits. */
  left: number;
  canceled: boolean;
  followed: boolean;
  /** 1 for the first recurring cycle of the end user, 2 for the second, and so on; 0 for a one-time cycle. */
  readonly started: number;
  readonly cycle: string;
  readonly period: number;
}

export interface Piece {
  readonly grant: Grant;
  readonly amount: number;
}

export interface OpenHold {
  readonly id: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Oldest credits first. */
  readonly pieces: readonly Piece[];
}

export interface Spent extends Piece {
  refunded: number;
}

export interface Touched {
  readonly cycle: string;
  readonly period: number;
  readonly amount: number;
  readonly held: number;
}

/** A renewal or a change of plan. */
export interface Turned {
  readonly isChange: boolean;
  readonly ended: Grant;
  readonly begun: Grant;
  readonly missed: number;
  readonly held: number;
}

export interface Happened {
  /** Null for the stop of a replaced cycle, because no response contains the ID of this transaction. */
  readonly id: string | null;
  readonly kind: string;
  readonly amount: number;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly actor: string;
  readonly note: string | null;
  /** The closed hold, the refunded transaction, or the transaction that scheduled the plan. */
  readonly reference: string | null;
  readonly touched: readonly Touched[];
}

const UNLISTED = ['schedule-plan', 'hold', 'release', 'lapse', 'stop-cycle'];

export class EndUser {
  /** In order of creation. */
  grants: Grant[] = [];
  holds: OpenHold[] = [];
  happened: Happened[] = [];
  readonly spent = new Map<string, Spent[]>();
  starts = 0;
  passedTo = 0;
  readonly turns: Turned[] = [];

  /** Copies neither `spent` nor `turns`. */
  copy({ withHistory }: { readonly withHistory: boolean }): EndUser {
    const copies = new Map(this.grants.map((grant) => [grant, { ...grant }]));
    const copy = new EndUser();
    copy.grants = [...copies.values()];
    // Ended grants never change, so the copy can share them.
    const copied = ({ grant, amount }: Piece) => ({ grant: copies.get(grant) ?? grant, amount });
    copy.holds = this.holds.map((hold) => ({ ...hold, pieces: hold.pieces.map(copied) }));
    copy.passedTo = this.passedTo;
    copy.starts = this.starts;
    if (withHistory) copy.happened = this.happened.slice();
    return copy;
  }

  isDue(now: number): boolean {
    const grant = this.renewing();
    return (grant !== undefined && grant.end <= now) || this.holds.some(({ expiresAt }) => expiresAt <= now);
  }

  passTime(now: number): void {
    const { length: turnsBefore } = this.turns;
    for (;;) {
      const ended = this.renewing();
      const lapsing = this.nextToLapse();
      const at = Math.min(ended?.end ?? Number.POSITIVE_INFINITY, lapsing?.expiresAt ?? Number.POSITIVE_INFINITY);
      if (at > now) break;
      // A renewal or a change of plan comes before a lapse at the same instant.
      if (ended?.end === at) this.#turn(ended, this.turns.length - turnsBefore);
      else this.#lapse(lapsing as OpenHold);
    }
    if (this.grants.some((grant) => grant.end <= now)) this.grants = this.grants.filter((grant) => grant.end > now);
    this.passedTo = Math.max(this.passedTo, now);
  }

  /** Returns the period that renews next, even if its renewal is already due. */
  renewing(): Grant | undefined {
    for (let place = this.grants.length - 1; place >= 0; place--) {
      const grant = this.grants[place] as Grant;
      if (grant.type === 'recurring' && !grant.canceled && !grant.followed && grant.end < LAST_INSTANT) return grant;
    }
    return undefined;
  }

  /** Holds that expire at the same instant lapse in the order of the last 12 digits of their IDs. */
  nextToLapse(): OpenHold | undefined {
    let next: OpenHold | undefined;
    for (const hold of this.holds) {
      const isFirst = next === undefined || hold.expiresAt < next.expiresAt;
      const isTie = next !== undefined && hold.expiresAt === next.expiresAt;
      if (isFirst || (isTie && hold.id.slice(24) < (next as OpenHold).id.slice(24))) next = hold;
    }
    return next;
  }

  #turn(ended: Grant, missed: number): void {
    const held = this.heldOf(ended);
    ended.followed = true;
    const begun = ended.next === null ? this.#renew(ended) : this.#change(ended, ended.next);
    this.turns.push({ isChange: ended.next !== null, ended, begun, missed, held });
  }

  #renew(ended: Grant): Grant {
    const { plan, createdAt, started, end: start, cycle, period } = ended;
    const amount = plan.amount + Math.min(ended.left, plan.rolloverMax);
    const grant = { type: 'recurring', amount, plan, next: null, createdAt, started, start, cycle } as const;
    const begun = this.open({ ...grant, period: period + 1 });
    this.happened.push({
      ...{ id: idOfTime(start, 0, cycle), kind: 'renew', amount, createdAt: start, expiresAt: begun.end },
      ...{ actor: 'renewal', note: null, reference: null },
      touched: [{ cycle, period: begun.period, amount, held: 0 }],
    });
    return begun;
  }

  #change({ end: start }: Grant, { id: scheduledBy, plan }: NonNullable<Grant['next']>): Grant {
    this.starts += 1;
    const cycle = idOfTime(start, 0, scheduledBy);
    const { amount } = plan;
    const grant = { type: 'recurring', amount, plan, next: null, createdAt: start, start, cycle, period: 0 } as const;
    const begun = this.open({ ...grant, started: this.starts });
    this.happened.push({
      ...{ id: cycle, kind: 'change-plan', amount, createdAt: start, expiresAt: begun.end },
      ...{ actor: 'change', note: null, reference: scheduledBy },
      touched: [{ cycle, period: 0, amount, held: 0 }],
    });
    return begun;
  }

  #lapse(hold: OpenHold): void {
    const { id, expiresAt: at } = hold;
    this.close(hold, 0, at);
    this.happened.push({
      ...{ id: idOfTime(at, 1, id), kind: 'lapse', amount: 0, createdAt: at, expiresAt: null },
      ...{ actor: 'lapse', note: null, reference: id },
      touched: hold.pieces.map((piece) => touchedOf(piece, 0, -piece.amount)),
    });
  }

  /** In spending order: by start, then by creation. */
  valid(now: number): Grant[] {
    const valid = this.grants.filter((grant) => grant.start <= now && now < grant.end);
    // Sorting is slow, and the grants are usually in order already.
    const areInOrder = valid.every((grant, index) => index === 0 || (valid[index - 1] as Grant).start <= grant.start);
    return areInOrder ? valid : valid.sort((a, b) => a.start - b.start);
  }

  balance(now: number): number {
    let sum = 0;
    for (const grant of this.valid(now)) {
      sum += grant.left;
      // Check each partial sum: JavaScript would round a sum above the maximum.
      if (sum > MOST) throw new Error(`the model has a balance of ${sum}`);
    }
    return sum;
  }

  held(): number {
    return this.holds.reduce((sum, { pieces }) => sum + sumOf(pieces), 0);
  }

  heldOf(grant: Grant): number {
    return sumOf(this.holds.flatMap(({ pieces }) => pieces.filter((piece) => piece.grant === grant)));
  }

  total(now: number): number {
    const total = this.balance(now) + this.held();
    if (total > MOST) throw new Error(`the model has ${total} credits, including held credits`);
    return total;
  }

  active(now: number): Grant | undefined {
    return this.valid(now).find((grant) => grant.type === 'recurring' && !grant.canceled);
  }

  open(wanted: Omit<Grant, 'end' | 'left' | 'canceled' | 'followed'>): Grant {
    const end = endOf(wanted.plan, wanted.createdAt, wanted.start, wanted.period);
    const grant: Grant = { ...wanted, end, left: wanted.amount, canceled: false, followed: false };
    this.grants.push(grant);
    return grant;
  }

  /** The balance must cover `wanted`. */
  pieces(wanted: number, now: number): Piece[] {
    const pieces: Piece[] = [];
    let missing = wanted;
    for (const grant of this.valid(now)) {
      const amount = Math.min(missing, grant.left);
      if (amount > 0) pieces.push({ grant, amount });
      missing -= amount;
    }
    return pieces;
  }

  draw(wanted: number, now: number): Piece[] {
    const pieces = this.pieces(wanted, now);
    for (const { grant, amount } of pieces) grant.left -= amount;
    return pieces;
  }

  close(hold: OpenHold, spent: number, now: number): { spent: Piece[]; returned: number; expired: number } {
    this.holds = this.holds.filter((each) => each !== hold);
    const closed = { spent: [] as Piece[], returned: 0, expired: 0 };
    let left = spent;
    for (const { grant, amount } of hold.pieces) {
      const taken = Math.min(left, amount);
      left -= taken;
      if (taken > 0) closed.spent.push({ grant, amount: taken });
      if (grant.end > now) {
        grant.left += amount - taken;
        closed.returned += amount - taken;
      } else closed.expired += amount - taken;
    }
    return closed;
  }

  spend(id: string, pieces: readonly Piece[]): Spent[] {
    const spent = pieces.map(({ grant, amount }) => ({ grant, amount, refunded: 0 }));
    this.spent.set(id, spent);
    return spent;
  }

  refundable(id: string | null): number | null {
    const spent = id === null ? undefined : this.spent.get(id);
    return spent === undefined ? null : spent.reduce((sum, { amount, refunded }) => sum + amount - refunded, 0);
  }

  /**
   * The room for credits that expire at `end`: how many can be added without exceeding the maximum balance now or at
   * the next renewal.
   */
  room(now: number, end: number): number {
    const room = MOST - this.total(now);
    const active = this.active(now);
    if (active === undefined || active.end >= LAST_INSTANT || end <= active.end) return room;
    return Math.min(room, this.roomAt(active.end));
  }

  /** The room at `then`, the end of the current period, if as many credits as possible roll over. */
  roomAt(then: number): number {
    const user = this.copy({ withHistory: false });
    user.passTime(then);
    const begun = user.active(then);
    if (begun !== undefined) begun.left = begun.plan.amount + begun.plan.rolloverMax;
    return MOST - user.total(then);
  }

  /** The room at `then` if the active cycle is stopped now. */
  roomWithoutCycle(now: number, then: number): number {
    const user = this.copy({ withHistory: false });
    const active = user.active(now);
    if (active !== undefined) active.canceled = true;
    user.passTime(then);
    return MOST - user.total(then);
  }

  listed(): Happened[] {
    return this.happened.filter(({ kind, amount }) => !UNLISTED.includes(kind) && amount !== 0);
  }
}

/** Months are counted from the creation of the cycle. */
export function endOf(plan: ModelPlan, createdAt: number, start: number, period: number): number {
  const { validityDays, validityMonths } = plan;
  if (validityMonths === null) return Math.min(start + (validityDays ?? 0) * DAY, LAST_INSTANT);
  return Math.min(monthsAfter(createdAt, (period + 1) * validityMonths), LAST_INSTANT);
}

export function sumOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { amount }) => sum + amount, 0);
}

export function latestEnd(pieces: readonly Piece[]): number {
  return Math.max(...pieces.map(({ grant }) => grant.end));
}

export function touchedOf({ grant }: Piece, amount: number, held: number): Touched {
  // `assert.deepEqual` distinguishes -0 from 0.
  return { cycle: grant.cycle, period: grant.period, amount: amount || 0, held: held || 0 };
}

/** `of` is the ID of the cycle, of the transaction that scheduled the plan, or of the hold. */
function idOfTime(at: number, sequence: 0 | 1, of: string): string {
  const time = at.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-4000-800${sequence}-${of.slice(24)}`;
}
