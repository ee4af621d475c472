// Derives an end user's events from postings and from the passage of time. The result depends only on the
// postings and the settings. It does not depend on when the events are derived, or in how many calls.
//
// Each transaction is a step, and so is each instant at which credits expire or `credits.expiring` happens. Steps are
// processed in chronological order. At the same instant, credits expire and cycles renew first, then holds lapse, then
// requests take effect. For each step, the balances before and after the step are compared with the thresholds. An
// expiry and the renewal or change of plan at the same instant are one step, so that Scrip does not report a low
// balance in between.

import { hash } from 'node:crypto';
import type { Amount } from '../ledger/amount.ts';
import { applyAll } from '../ledger/apply.ts';
import { activeBalance, atItsEnd } from '../ledger/balance.ts';
import type { EndUserKey } from '../ledger/command.ts';
import { type Cycle, renews, spendable } from '../ledger/cycle.ts';
import type { Hold } from '../ledger/hold.ts';
import { DAY_MS, INSTANT_MAX, type Instant } from '../ledger/instant.ts';
import { NEVER, nextEventAt } from '../ledger/next-event.ts';
import { currentPeriodName, isOpening, type Posting, rolledOverBy, transactionOf } from '../ledger/posting.ts';
import { EMPTY_STATE, type EndUserState, liveState } from '../ledger/state.ts';
import type {
  Derivation,
  DerivationInput,
  EventData,
  EventSettings,
  EventState,
  EventType,
  LedgerEvent,
} from '../store/event-log.ts';
import { thresholdText } from '../store/event-log.ts';
import { wholeTransactions } from '../store/transaction-history.ts';

type Fields = Omit<EventData, 'end_user_id' | 'balance'>;
type Transaction = readonly [Posting, ...Posting[]];

/** Maximum number of steps in one call to `wait`. With 3,000 cycles, this many steps take about 30 ms. */
const STEPS_MAX = 100;

function nothing({ expiringDays }: EventSettings): EventState {
  return { at: 0, latestGrant: 0, expiringDays, state: EMPTY_STATE };
}

export function deriveEvents({ user, from, postings, until, settings }: DerivationInput): Derivation {
  const endUser = new EndUserEvents(user, from ?? nothing(settings), settings);
  for (const transaction of wholeTransactions(postings, ({ transactionId }) => transactionId))
    endUser.record(transaction);
  if (until !== null) endUser.wait(until);
  return endUser.derivation();
}

/** A transaction, or an instant at which credits expire or the `credits.expiring` event happens. */
interface Step {
  readonly at: Instant;
  /** Identifies the step among all steps of the end user. */
  readonly cause: string;
  /** Absent if the step is an instant without a transaction. */
  readonly transactionId?: string;
  readonly after: EndUserState;
  /** The balance after the step minus the balance before the step. */
  readonly change: number;
  /** Whether the step can change the result of `#nextInstant`. */
  readonly changesNext: boolean;
  readonly happened: readonly Happened[];
}

interface Happened {
  readonly type: EventType;
  /** Identifies the event among all events of the same type and end user. */
  readonly cause: string;
  readonly fields: Fields;
}

class EndUserEvents {
  readonly #user: EndUserKey;
  readonly #settings: EventSettings;
  readonly #events: LedgerEvent[] = [];
  #at: Instant;
  /** Can contain cycles that have ended: removing ended cycles after every posting would take too long. */
  #state: EndUserState;
  #balance: Amount;
  #latestGrant: Amount;
  /** Each threshold in credits. A percentage refers to the latest grant. */
  #limits: readonly Amount[];
  /**
   * The cached result of `#nextInstant`; null if it must be computed. An end user can have thousands of cycles, and
   * most postings do not change the result.
   */
  #next: Instant | null = null;

  constructor(user: EndUserKey, { at, state, latestGrant, expiringDays }: EventState, settings: EventSettings) {
    this.#user = user;
    this.#settings = settings;
    this.#at = at;
    this.#state = state;
    this.#balance = activeBalance(state.cycles, at);
    this.#latestGrant = latestGrant;
    this.#limits = limitsOf(settings, latestGrant);
    this.#addMissed(expiringDays);
  }

  record(postings: Transaction): void {
    const [first] = postings;
    const { createdAt: at, transactionId } = first;
    const isByPeriodEnd = first.kind === 'renew' || first.kind === 'change-plan';
    this.#passTo(isByPeriodEnd ? at - 1 : at);
    const ended = isByPeriodEnd ? this.#endOfPeriods(at, first) : null;
    const step: Step = {
      at,
      cause: ended?.cause ?? transactionId,
      transactionId,
      after: applyAll(this.#state, postings),
      change: (ended?.change ?? 0) + changeBy(postings, Math.max(at, this.#at)),
      changesNext: isOpening(postings.at(-1) ?? first) || first.kind === 'stop-cycle',
      happened: [...(ended?.happened ?? []), ...happenedIn(postings), ...lostIn(postings)],
    };
    this.#take(step, grantOf(postings));
  }

  /**
   * Derives the time-driven events up to `until`. Stops before the next renewal, change of plan or lapse, because its
   * posting must be passed to `record` first. Also stops after `STEPS_MAX` steps, because an end user with thousands of
   * ended cycles would otherwise block the event loop. If events remain after these steps, `dueAt` stays in the past,
   * so that a later call derives them.
   */
  wait(until: Instant): void {
    this.#passTo(Math.min(until, nextEventAt(this.#state) - 1), STEPS_MAX);
  }

  derivation(): Derivation {
    const { expiringDays } = this.#settings;
    const state = liveState(this.#state, this.#at);
    const next = { at: this.#at, latestGrant: this.#latestGrant, expiringDays, state };
    // Ignore cycles without credits: they cause no time-driven event.
    const dueAt = this.#nextInstantOf(next.state.cycles.filter(({ remaining }) => remaining > 0));
    return { events: this.#events, next, dueAt: dueAt < nextEventAt(next.state) ? dueAt : null };
  }

  #passTo(until: Instant, stepsMax = Number.POSITIVE_INFINITY): void {
    let steps = 0;
    for (let at = this.#nextInstant(); at <= until; at = this.#nextInstant()) {
      if (steps === stepsMax) return;
      this.#take(this.#endOfPeriods(at, null));
      steps += 1;
    }
    this.#at = Math.max(this.#at, until);
  }

  #nextInstant(): Instant {
    this.#next ??= this.#nextInstantOf(this.#state.cycles);
    return this.#next;
  }

  /** The next instant at which credits expire or `credits.expiring` happens; `NEVER` if there is none. */
  #nextInstantOf(cycles: readonly Cycle[]): Instant {
    let next = NEVER;
    for (const cycle of cycles) {
      const soon = this.#expiringInstant(cycle);
      if (soon > this.#at) next = Math.min(next, soon);
      if (cycle.end > this.#at && cycle.end < INSTANT_MAX && !renews(cycle)) next = Math.min(next, cycle.end);
    }
    return next;
  }

  /** When `credits.expiring` happens for the current period of a cycle; 0 if the event does not happen. */
  #expiringInstant({ start, end }: Cycle, days = this.#settings.expiringDays): Instant {
    const at = end - days * DAY_MS;
    return end < INSTANT_MAX && at > start ? at : 0;
  }

  /**
   * If `expiringDays` was raised, the new instant of `credits.expiring` can have passed, although the event did not
   * happen with the previous setting. Adds these events. Their IDs depend on the previous setting, because the event
   * can already have happened at the same instant, before the setting was lowered. If the setting is lowered and raised
   * again and again, an event can nevertheless happen again with the same ID; receivers ignore it.
   */
  #addMissed(previousDays: number): void {
    if (previousDays === this.#settings.expiringDays) return;
    const missed = this.#state.cycles
      .map((cycle) => ({ cycle, at: this.#expiringInstant(cycle), before: this.#expiringInstant(cycle, previousDays) }))
      .filter(
        ({ cycle, at, before }) =>
          at > 0 && at <= this.#at && this.#at < cycle.end && !(before > 0 && before <= this.#at),
      )
      .toSorted((a, b) => a.at - b.at);
    for (const { cycle, at } of missed)
      for (const { type, cause, fields } of expiringOf(cycle, this.#state.holds, at))
        this.#add(type, at, `${cause}/after ${previousDays} days`, fields);
  }

  /** @param opening the posting that opens the next period; null if no period begins at `at` */
  #endOfPeriods(at: Instant, opening: Posting | null): Step {
    const ended = this.#state.cycles.filter(({ end }) => end === at);
    return {
      at,
      cause: `time/${at}`,
      after: this.#state,
      change: -sumOf(ended),
      changesNext: true,
      happened: [...this.#expiringAt(at), ...ended.flatMap((cycle) => expiryOf(cycle, opening))],
    };
  }

  #expiringAt(at: Instant): Happened[] {
    return this.#state.cycles
      .filter((cycle) => this.#expiringInstant(cycle) === at)
      .flatMap((cycle) => expiringOf(cycle, this.#state.holds, at));
  }

  /** @param grant the credits that the step grants; null if the step opens no cycle or period */
  #take({ at, cause, transactionId, after, change, changesNext, happened }: Step, grant: Amount | null = null): void {
    this.#at = Math.max(this.#at, at);
    this.#state = changesNext ? liveState(after, this.#at) : after;
    if (changesNext) this.#next = null;
    const before = { balance: this.#balance, limits: this.#limits, hadGrant: this.#latestGrant > 0 };
    this.#balance += change;
    if (grant !== null) {
      this.#latestGrant = grant;
      this.#limits = limitsOf(this.#settings, grant);
    }
    for (const each of happened) this.#add(each.type, at, each.cause, each.fields);
    const fields = {
      previous_balance: before.balance,
      ...(transactionId === undefined ? {} : { transaction_id: transactionId }),
    };
    this.#compare(before, (type, name, more) => this.#add(type, at, name + cause, { ...fields, ...more }));
  }

  /** Adds the `balance.low`, `balance.exhausted` and `balance.recovered` events that the new balance causes. */
  #compare(
    before: { readonly balance: Amount; readonly limits: readonly Amount[]; readonly hadGrant: boolean },
    add: (type: EventType, name: string, fields: Fields) => void,
  ): void {
    const recovered: string[] = [];
    for (const [index, threshold] of this.#settings.thresholds.entries()) {
      const wasLow = before.balance < (before.limits[index] as Amount);
      const isLow = this.#balance < (this.#limits[index] as Amount);
      if (wasLow === isLow) continue;
      const text = thresholdText(threshold);
      if (isLow) add('balance.low', `${text}/`, { threshold: text });
      else recovered.push(text);
    }
    if (before.balance > 0 && this.#balance === 0) add('balance.exhausted', '', {});
    const isRefilled = before.balance === 0 && this.#balance > 0;
    // The first grant raises the balance from 0, but this is not a recovery.
    if (before.hadGrant && (isRefilled || recovered.length > 0))
      add('balance.recovered', '', { thresholds: recovered });
  }

  #add(type: EventType, at: Instant, cause: string, fields: Fields): void {
    const { account, endUser } = this.#user;
    const id = `evt_${hash('sha256', `${account}/${endUser}/${type}/${cause}`).slice(0, 32)}`;
    this.#events.push({ id, type, at, data: { end_user_id: endUser, ...fields, balance: this.#balance } });
  }
}

/** Returns `credits.expiring` for the credits that expire at the end of the period if nothing is written before then. */
function expiringOf(cycle: Cycle, holds: readonly Hold[], at: Instant): Happened[] {
  const ended = atItsEnd(cycle, holds);
  const amount = spendable(ended) - rollingOver(ended);
  if (amount === 0) return [];
  const fields = { cycle_id: cycle.id, amount, expire_at: timestamp(cycle.end) };
  // The cause contains the instant, so that the event can happen again, with another ID, if `expiringDays` changes.
  return [{ type: 'credits.expiring', cause: `${currentPeriodName(cycle)}/${at}`, fields }];
}

/** Returns `credits.expired` for the end of a period. @param opening the posting that opens the next period, or null */
function expiryOf(cycle: Cycle, opening: Posting | null): Happened[] {
  const kept = opening !== null && renews(cycle) ? rolledOverBy(opening) : 0;
  const amount = spendable(cycle) - kept;
  if (amount === 0) return [];
  return [{ type: 'credits.expired', cause: currentPeriodName(cycle), fields: { cycle_id: cycle.id, amount } }];
}

/** Returns how much the postings of a transaction change the balance at `now`. */
function changeBy(postings: Transaction, now: Instant): number {
  return postings.reduce((sum, { amount, held, expiresAt }) => (expiresAt > now ? sum + amount - held : sum), 0);
}

function sumOf(cycles: readonly Cycle[]): Amount {
  return cycles.reduce((sum, cycle) => sum + spendable(cycle), 0);
}

/** Returns the event that reports a transaction; an empty list if the transaction has no event of its own. */
function happenedIn(postings: Transaction): Happened[] {
  const [first] = postings;
  const { id, kind, amount, expiresAt } = transactionOf(postings as [Posting, ...Posting[]]);
  const cycle = { transaction_id: id, cycle_id: first.cycleId };
  const event = (type: EventType, fields: Fields): Happened[] => [{ type, cause: id, fields }];
  switch (kind) {
    case 'add':
      return event('credits.added', { transaction_id: id, amount, expire_at: timestamp(expiresAt) });
    case 'subtract':
      return event('credits.subtracted', { transaction_id: id, amount: -amount });
    case 'capture':
      return amount === 0
        ? []
        : event('credits.subtracted', { transaction_id: id, amount: -amount, hold_id: first.reference as string });
    case 'refund':
      return event('credits.refunded', {
        transaction_id: id,
        amount,
        expired: refundExpired(postings),
        refunded_transaction_id: first.reference as string,
      });
    case 'start-cycle':
    case 'change-plan':
      return event('cycle.started', { ...cycle, amount, cycle_end: timestamp(expiresAt) });
    case 'renew':
      return event('cycle.renewed', {
        ...cycle,
        amount,
        rolled_over: rolledOverBy(first),
        cycle_end: timestamp(expiresAt),
      });
    case 'stop-cycle':
      return event('cycle.stopped', { ...cycle, cycle_end: timestamp(expiresAt) });
    case 'lapse':
      return event('hold.lapsed', {
        transaction_id: id,
        hold_id: first.reference as string,
        amount: postings.reduce((sum, { held }) => sum - held, 0),
      });
    case 'hold':
    case 'release':
    case 'schedule-plan':
      return [];
  }
}

/** The refunded credits that expire immediately: their periods have ended, and the refund opens no cycle for them. */
function refundExpired(postings: Transaction): Amount {
  return postings.reduce((sum, posting) => {
    if (isOpening(posting)) return sum - posting.amount;
    return posting.expiresAt <= posting.createdAt ? sum + posting.amount : sum;
  }, 0);
}

/** Held credits that go back to an ended period expire immediately. Returns `credits.expired` for these credits. */
function lostIn(postings: Transaction): Happened[] {
  return postings.flatMap(({ transactionId, cycleId, period, amount, held, createdAt, expiresAt }) => {
    const lost = held < 0 && expiresAt <= createdAt ? amount - held : 0;
    const cause = `${transactionId}/${cycleId}/${period}`;
    return lost > 0 ? [{ type: 'credits.expired' as const, cause, fields: { cycle_id: cycleId, amount: lost } }] : [];
  });
}

/** The credits that a transaction grants; null if its first posting opens no cycle or period, as in a refund. */
function grantOf([first]: Transaction): Amount | null {
  return isOpening(first) ? first.amount : null;
}

/** The credits that would roll over if the cycle ended now; 0 if the cycle does not renew with the same plan. */
function rollingOver(cycle: Cycle): Amount {
  return renews(cycle) && cycle.next === null ? Math.min(cycle.plan.rolloverMax, spendable(cycle)) : 0;
}

/** Returns, for each threshold, the smallest balance that is not below the threshold. */
function limitsOf({ thresholds }: EventSettings, latestGrant: Amount): readonly Amount[] {
  return thresholds.map((threshold) => {
    if ('credits' in threshold) return threshold.credits;
    return Number((BigInt(latestGrant) * BigInt(threshold.percent) + 99n) / 100n);
  });
}

function timestamp(at: Instant): string {
  return new Date(at).toISOString();
}
