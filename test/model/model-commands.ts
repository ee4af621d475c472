// The commands of the reference model.

import {
  type EndUser,
  endOf,
  type Grant,
  type Happened,
  LAST_INSTANT,
  latestEnd,
  MOST,
  type OpenHold,
  type Piece,
  type Spent,
  sumOf,
  type Touched,
  touchedOf,
} from './model-end-user.ts';
import type { ModelCommand, ModelCycle, ModelHoldResult, ModelOutcome, ModelPlan } from './model-types.ts';

export interface Moment {
  readonly now: number;
  readonly id: string;
}

const HOLDS_MAX = 1_000;

export function decide(user: EndUser, command: ModelCommand, moment: Moment): ModelOutcome {
  switch (command.kind) {
    case 'add':
      return add(user, command, moment);
    case 'subtract':
      return subtract(user, command, moment);
    case 'start-cycle':
      return startCycle(user, command, moment);
    case 'stop-cycle':
      return stopCycle(user, command, moment);
    case 'hold':
      return hold(user, command, moment);
    case 'capture':
      return capture(user, command, moment);
    case 'release':
      return release(user, command, moment);
    case 'refund':
      return refund(user, command, moment);
  }
}

type Of<Kind extends ModelCommand['kind']> = Extract<ModelCommand, { kind: Kind }>;

function entryOf({ kind, actor, note = null }: ModelCommand, { now: createdAt, id }: Moment) {
  return { id, kind, createdAt, actor, note, reference: null } as const;
}

function add(user: EndUser, command: Of<'add'>, moment: Moment): ModelOutcome {
  const { amount, validityDays, validityMonths } = command;
  const { now, id } = moment;
  const plan = { amount, validityDays, validityMonths, rolloverMax: 0 };
  const available = user.room(now, endOf(plan, now, now, 0));
  if (amount > available) return { refused: 'BalanceTooLarge', requested: amount, available };
  const { end: expiresAt } = opened(user, 'one-time', plan, moment);
  const touched = [{ cycle: id, period: 0, amount, held: 0 }];
  user.happened.push({ ...entryOf(command, moment), amount, expiresAt, touched });
  return { refused: null, transactionId: id };
}

function opened(user: EndUser, type: Grant['type'], plan: ModelPlan, { now, id }: Moment): Grant {
  const started = type === 'one-time' ? 0 : user.starts;
  const { amount } = plan;
  return user.open({ type, amount, plan, next: null, createdAt: now, start: now, started, cycle: id, period: 0 });
}

function subtract(user: EndUser, command: Of<'subtract'>, moment: Moment): ModelOutcome {
  const { amount } = command;
  const { now, id } = moment;
  const available = user.balance(now);
  if (amount > available) return { refused: 'InsufficientFunds', requested: amount, available };
  const drawn = user.draw(amount, now);
  user.spend(id, drawn);
  const touched = drawn.map((piece) => touchedOf(piece, -piece.amount, 0));
  user.happened.push({ ...entryOf(command, moment), amount: -amount, expiresAt: latestEnd(drawn), touched });
  return { refused: null, transactionId: id };
}

function startCycle(user: EndUser, command: Of<'start-cycle'>, moment: Moment): ModelOutcome {
  const { amount, validityDays, validityMonths, rolloverMax, onActive } = command;
  const plan = { amount, validityDays, validityMonths, rolloverMax };
  const { now, id } = moment;
  const active = user.active(now);
  // A cycle that ends at `LAST_INSTANT` never renews.
  if (active && onActive === 'at_period_end' && active.end < LAST_INSTANT)
    return schedule(user, active, plan, command, moment);
  if (active && onActive !== 'replace') return { refused: 'CycleAlreadyActive', cycle: cycleOf(user, active) };
  // A replaced cycle never renews, so its renewal does not count toward the maximum balance.
  const rooms = [MOST - user.total(now)];
  if (rolloverMax > 0) rooms.push(user.roomWithoutCycle(now, endOf(plan, now, now, 0)) - rolloverMax);
  const available = Math.max(Math.min(...rooms), 0);
  if (amount > available) return { refused: 'BalanceTooLarge', requested: amount, available };
  if (active) stop(user, active, { ...entryOf(command, moment), id: null });
  user.starts += 1;
  const grant = opened(user, 'recurring', plan, moment);
  const touched = [{ cycle: id, period: 0, amount, held: 0 }];
  user.happened.push({ ...entryOf(command, moment), amount, expiresAt: grant.end, touched });
  return { refused: null, transactionId: id, cycle: cycleOf(user, grant) };
}

function schedule(user: EndUser, active: Grant, plan: ModelPlan, command: ModelCommand, moment: Moment): ModelOutcome {
  const { now, id } = moment;
  const available = Math.max(user.roomWithoutCycle(now, active.end) - plan.rolloverMax, 0);
  if (plan.amount > available) return { refused: 'BalanceTooLarge', requested: plan.amount, available };
  active.next = { id, plan };
  const touched = [{ cycle: active.cycle, period: active.period, amount: 0, held: 0 }];
  const entry = { ...entryOf(command, moment), kind: 'schedule-plan', amount: 0, expiresAt: null };
  user.happened.push({ ...entry, touched });
  return { refused: null, transactionId: id, cycle: cycleOf(user, active) };
}

/** A second stop returns the cycle that the first stop canceled, unless another cycle was started in between. */
function stopCycle(user: EndUser, command: Of<'stop-cycle'>, moment: Moment): ModelOutcome {
  const { now, id } = moment;
  const active = user.active(now);
  if (active !== undefined) {
    stop(user, active, entryOf(command, moment));
    return { refused: null, transactionId: id, cycle: cycleOf(user, active) };
  }
  const stopped = user.valid(now).find((grant) => grant.canceled && grant.started === user.starts);
  if (stopped === undefined) return { refused: 'CycleNotFound' };
  return { refused: null, transactionId: null, cycle: cycleOf(user, stopped) };
}

function stop(user: EndUser, active: Grant, entry: Omit<Happened, 'amount' | 'expiresAt' | 'touched'>): void {
  active.canceled = true;
  active.next = null;
  const touched = [{ cycle: active.cycle, period: active.period, amount: 0, held: 0 }];
  user.happened.push({ ...entry, kind: 'stop-cycle', amount: 0, expiresAt: null, touched });
}

function hold(user: EndUser, command: Of<'hold'>, moment: Moment): ModelOutcome {
  const { amount, expiresInSeconds } = command;
  const { now, id } = moment;
  if (user.holds.length >= HOLDS_MAX) return { refused: 'TooManyHolds' };
  const available = user.balance(now);
  if (amount > available) return { refused: 'InsufficientFunds', requested: amount, available };
  const expiresAt = Math.min(now + expiresInSeconds * 1_000, LAST_INSTANT);
  const refusal = withoutRoomForRenewal(user, user.pieces(amount, now), expiresAt, now);
  if (refusal !== null) return refusal;
  const pieces = user.draw(amount, now);
  user.holds.push({ id, createdAt: now, expiresAt, pieces });
  const touched = pieces.map((piece) => touchedOf(piece, 0, piece.amount));
  user.happened.push({ ...entryOf(command, moment), amount: 0, expiresAt: null, touched });
  const result = {
    id,
    createdAt: now,
    expiresAt,
    status: 'open',
    amount,
    captured: 0,
    returned: 0,
    expired: 0,
  } as const;
  return { refused: null, transactionId: id, hold: result };
}

/** Credits that are held beyond the end of their period count toward the maximum balance. */
function withoutRoomForRenewal(user: EndUser, pieces: readonly Piece[], expiresAt: number, now: number) {
  const active = user.active(now);
  if (active === undefined || active.end >= LAST_INSTANT || expiresAt <= active.end) return null;
  const requested = sumOf(pieces.filter(({ grant }) => grant.end <= active.end));
  const available = user.roomAt(active.end);
  return requested > available ? ({ refused: 'BalanceTooLarge', requested, available } as const) : null;
}

function capture(user: EndUser, command: Of<'capture'>, moment: Moment): ModelOutcome {
  const { now, id } = moment;
  const open = user.holds.find((each) => each.id === command.holdId);
  if (open === undefined) return { refused: 'HoldNotFound' };
  const held = sumOf(open.pieces);
  const captured = command.amount ?? held;
  const available = held + user.balance(now);
  if (captured > available) return { refused: 'InsufficientFunds', requested: captured, available };
  const { spent: kept, returned, expired } = user.close(open, Math.min(captured, held), now);
  const drawn = user.draw(Math.max(captured - held, 0), now);
  const spent = user.spend(id, [...kept, ...drawn]);
  // Each grant is touched once, in the order of the hold. Other grants come before the grants that were drawn later.
  const waiting = drawn.filter(({ grant }) => !open.pieces.some((piece) => piece.grant === grant));
  const touched: Touched[] = [];
  for (const piece of open.pieces) {
    const turn = drawn.findIndex(({ grant }) => grant === piece.grant);
    while (waiting[0] !== undefined && drawn.indexOf(waiting[0]) < turn)
      touched.push(touchedOf(waiting[0], -(waiting.shift() as Piece).amount, 0));
    touched.push(touchedOf(piece, -sumOf(spent.filter(({ grant }) => grant === piece.grant)), -piece.amount));
  }
  for (const piece of waiting) touched.push(touchedOf(piece, -piece.amount, 0));
  const change = { amount: -captured, expiresAt: latestEnd(spent), reference: open.id, touched };
  user.happened.push({ ...entryOf(command, moment), ...change });
  return { refused: null, transactionId: id, hold: closed(open, 'captured', { captured, returned, expired }) };
}

function release(user: EndUser, command: Of<'release'>, moment: Moment): ModelOutcome {
  const open = user.holds.find((each) => each.id === command.holdId);
  if (open === undefined) return { refused: 'HoldNotFound' };
  const { returned, expired } = user.close(open, 0, moment.now);
  const touched = open.pieces.map((piece) => touchedOf(piece, 0, -piece.amount));
  user.happened.push({ ...entryOf(command, moment), amount: 0, expiresAt: null, reference: open.id, touched });
  const result = closed(open, 'released', { captured: 0, returned, expired });
  return { refused: null, transactionId: moment.id, hold: result };
}

function closed(
  { id, createdAt, expiresAt, pieces }: OpenHold,
  status: 'captured' | 'released',
  change: Pick<ModelHoldResult, 'captured' | 'returned' | 'expired'>,
): ModelHoldResult {
  return { id, createdAt, expiresAt, status, amount: sumOf(pieces), ...change };
}

function refund(user: EndUser, command: Of<'refund'>, moment: Moment): ModelOutcome {
  const { transactionId, validityDays } = command;
  const { now, id } = moment;
  const refundable = user.refundable(transactionId);
  if (refundable === null) {
    const isThere = user.happened.some((each) => each.id === transactionId);
    return { refused: isThere ? 'NotRefundable' : 'TransactionNotFound' };
  }
  const wanted = command.amount ?? refundable;
  if (refundable === 0 || wanted > refundable)
    return { refused: 'RefundTooLarge', requested: command.amount, refundable };
  const backwards = (user.spent.get(transactionId) ?? []).toReversed();
  const given: Piece[] = [];
  const amounts = new Map<Spent, number>();
  let left = wanted;
  for (const spent of backwards) {
    const amount = Math.min(left, spent.amount - spent.refunded);
    amounts.set(spent, amount);
    const same = given.findIndex(({ grant }) => grant === spent.grant);
    if (same >= 0) given[same] = { grant: spent.grant, amount: (given[same] as Piece).amount + amount };
    else if (amount > 0) given.push({ grant: spent.grant, amount });
    left -= amount;
  }
  const ended = sumOf(given.filter(({ grant }) => grant.end <= now));
  const revived = validityDays === null ? 0 : ended;
  const restored = wanted - ended + revived;
  const plan = { amount: revived, validityDays: validityDays ?? 0, validityMonths: null, rolloverMax: 0 };
  const newEnd = endOf(plan, now, now, 0);
  const available = user.room(now, Math.max(latestEnd(given), revived > 0 ? newEnd : 0));
  if (restored > available) return { refused: 'BalanceTooLarge', requested: restored, available };
  for (const [spent, amount] of amounts) spent.refunded += amount;
  for (const { grant, amount } of given) if (grant.end > now) grant.left += amount;
  const touched = given.map((piece) => touchedOf(piece, piece.amount, 0));
  let expiresAt = latestEnd(given);
  if (revived > 0) {
    expiresAt = Math.max(expiresAt, opened(user, 'one-time', plan, moment).end);
    touched.push({ cycle: id, period: 0, amount: revived, held: 0 });
  }
  user.happened.push({ ...entryOf(command, moment), amount: restored, expiresAt, reference: transactionId, touched });
  return { refused: null, transactionId: id, refund: { restored, expired: ended - revived } };
}

export function cycleOf(user: EndUser, grant: Grant): ModelCycle {
  const { type, canceled, amount, left: spendable, createdAt, start, end, plan } = grant;
  const status = canceled ? 'canceled' : 'active';
  const next = grant.next === null ? null : { ...grant.next.plan, startsAt: end };
  const { validityMonths, rolloverMax } = plan;
  const shown = { type, status, amount, spendable, held: user.heldOf(grant), createdAt, start, end } as const;
  return { ...shown, validityMonths, rolloverMax, next };
}
