// Generates the requests of the demo: two months of requests from a product that sells credits to 200 end users.
//
// The generator ignores balances. As in production, the ledger refuses subtractions that exceed the balance.

import type { WriteCommand } from '../../ledger/command.ts';
import { DAY_MS, HOUR_MS, type Instant } from '../../ledger/instant.ts';
import type { TransactionId } from '../../ledger/transaction-id.ts';
import { Random } from './random.ts';

export const END_USERS = 200;
export const DAYS = 61;

export interface DemoRequest {
  readonly at: Instant;
  readonly command: WriteCommand;
  /**
   * Returns a request that follows this one, such as the capture of a hold. Called with the ID of the transaction that
   * this request recorded; not called if this request recorded no transaction.
   */
  readonly followUp?: (transactionId: TransactionId) => DemoRequest;
}

type Credits = { readonly amount: number; readonly validityDays: number };

const TRIAL: Credits = { amount: 50, validityDays: 14 };
const BUNDLES: readonly [Credits, ...Credits[]] = [
  { amount: 200, validityDays: 90 },
  { amount: 500, validityDays: 180 },
  { amount: 1_000, validityDays: 365 },
];
/** Credits per month. */
const PLANS = [300, 300, 1_000] as const;
const MONTH_DAYS = 30;

/** Relative spending on each day of the week, starting with Sunday. */
const WEEKDAYS = [0.3, 1.1, 1.2, 1.15, 1.1, 0.95, 0.35] as const;
/** Relative spending in each hour of the day (UTC). */
const HOURS: readonly number[] = [1, 1, 0, 0, 0, 1, 2, 4, 8, 10, 11, 10, 7, 9, 11, 11, 9, 6, 4, 3, 3, 3, 2, 1];
const HOURS_SUM = HOURS.reduce((sum, share) => sum + share, 0);

const SIGNED_UP_FIRST_WEEK = 0.35;
const STAYS = 0.72;
const SUBSCRIBES = 0.6;
const STOPS = 0.2;
const UPGRADES = 0.1;

const REFUNDED = 0.004;
/** The share of end users that run long jobs. The cost of a long job is known only when the job ends. */
const RUNS_JOBS = 0.25;
/** The average number of long jobs per day, for each end user that runs long jobs. */
const JOBS_A_DAY = 0.4;
const JOB_SECONDS_MAX = 900;
/** The share of holds that are captured, and the share that are released. All other holds lapse. */
const CAPTURED = 0.88;
const RELEASED = 0.07;
/** Of the end users that run long jobs, this share still has a job running at the end of the two months. */
const RUNNING = 0.3;
const RUNNING_SECONDS = 24 * 3_600;

/**
 * @param account the ID of the account that all end users belong to; the API key with ID 1 makes the requests
 * @returns the requests in chronological order, without the follow-up requests that `followUp` creates
 */
export function demoHistory(seed: number, account: number, until: Instant): DemoRequest[] {
  const random = new Random(seed);
  const from = until - DAYS * DAY_MS;
  const requests = Array.from({ length: END_USERS }, () => new Customer(random, account, { from, until }).requests());
  return requests.flat().sort((a, b) => a.at - b.at);
}

class Customer {
  readonly #random: Random;
  readonly #until: Instant;
  readonly #signedUp: Instant;
  readonly #request: { account: number; endUser: string; actor: string };
  readonly #requests: DemoRequest[] = [];

  constructor(random: Random, account: number, { from, until }: { from: Instant; until: Instant }) {
    this.#random = random;
    this.#until = until;
    this.#request = { account, endUser: random.uuid(), actor: 'key:1' };
    const weeks = random.chance(SIGNED_UP_FIRST_WEEK) ? [0, 7] : [7, DAYS - 1];
    this.#signedUp = this.#byDay(from + DAY_MS * Math.floor(random.between(weeks[0] as number, weeks[1] as number)));
  }

  requests(): readonly DemoRequest[] {
    const random = this.#random;
    this.#grant(this.#signedUp, TRIAL);
    const trialEnd = this.#signedUp + TRIAL.validityDays * DAY_MS;
    if (!random.chance(STAYS)) this.#spend(this.#signedUp, trialEnd, random.between(0.2, 1.2), 4);
    else {
      const bought = this.#byDay(random.between(this.#signedUp + 2 * DAY_MS, trialEnd));
      this.#spend(this.#signedUp, bought, random.between(0.5, 1.5), 5);
      if (random.chance(SUBSCRIBES)) this.#subscribe(bought);
      else this.#buyBundles(bought);
    }
    if (random.chance(RUNS_JOBS)) this.#runJobs();
    return this.#requests.filter(({ at }) => at < this.#until);
  }

  #buyBundles(from: Instant): void {
    const bundle = this.#random.pick(BUNDLES);
    for (let at = from; at < this.#until; at = this.#byDay(at + this.#random.between(12, 40) * DAY_MS))
      this.#grant(at, bundle);
    this.#spend(from, this.#until, this.#random.between(0.3, 1.6), bundle.amount / 25);
  }

  #subscribe(from: Instant): void {
    const random = this.#random;
    const amount = random.pick(PLANS);
    this.#start(from, amount, 'refuse');
    const month = MONTH_DAYS * DAY_MS;
    const change = this.#byDay(from + random.between(0.3, 1.6) * month);
    const stops = random.chance(STOPS);
    if (stops) this.#requests.push({ at: change, command: { kind: 'stop-cycle', ...this.#request } });
    else if (random.chance(UPGRADES)) this.#start(change, 3 * amount, 'replace');
    const ends = stops ? from + Math.ceil((change - from) / month) * month : this.#until;
    this.#spend(from, ends, random.between(0.5, 2), amount / 30);
  }

  #grant(at: Instant, credits: Credits): void {
    this.#requests.push({ at, command: { kind: 'add', ...this.#request, ...credits } });
  }

  #start(at: Instant, amount: number, onActive: 'refuse' | 'replace'): void {
    const terms = { amount, validityDays: MONTH_DAYS, onActive };
    this.#requests.push({ at, command: { kind: 'start-cycle', ...this.#request, ...terms } });
  }

  /**
   * @param timesADay average number of subtractions per day, before the factor for the weekday is applied
   * @param mean average amount of a subtraction
   */
  #spend(from: Instant, until: Instant, timesADay: number, mean: number): void {
    for (let day = startOfDay(from); day < Math.min(until, this.#until); day += DAY_MS) {
      const times = this.#random.poisson(timesADay * (WEEKDAYS[new Date(day).getUTCDay()] as number));
      for (let time = 0; time < times; time++) {
        const at = this.#byDay(day);
        const amount = Math.max(1, Math.round(-Math.log(1 - this.#random.next()) * mean));
        if (at <= from || at >= until) continue;
        const command = { kind: 'subtract', ...this.#request, amount } as const;
        this.#requests.push(this.#random.chance(REFUNDED) ? this.#refunded({ at, command }) : { at, command });
      }
    }
  }

  #refunded(request: DemoRequest): DemoRequest {
    const followUp = (transactionId: TransactionId): DemoRequest => ({
      at: request.at + HOUR_MS,
      command: {
        kind: 'refund',
        ...this.#request,
        transactionId,
        amount: null,
        validityDays: null,
        note: 'the result was empty',
      },
    });
    return { ...request, followUp };
  }

  #runJobs(): void {
    const random = this.#random;
    for (let day = this.#signedUp; day < this.#until; day += DAY_MS)
      for (let jobs = random.poisson(JOBS_A_DAY); jobs > 0; jobs--) this.#runJob(this.#byDay(day));
    if (random.chance(RUNNING))
      this.#requests.push(this.#hold(this.#until - HOUR_MS * random.between(0.05, 1), 20, RUNNING_SECONDS));
  }

  #runJob(at: Instant): void {
    const random = this.#random;
    const amount = Math.ceil(random.between(5, 40));
    const cost = Math.max(1, Math.round(amount * random.between(0.2, 1.05)));
    const request = this.#hold(at, amount, JOB_SECONDS_MAX);
    const end = at + Math.floor(random.between(20, JOB_SECONDS_MAX - 20)) * 1_000;
    const fate = random.next();
    if (fate > CAPTURED + RELEASED) {
      this.#requests.push(request);
      return;
    }
    const followUp = (holdId: TransactionId): DemoRequest => ({
      at: end,
      command:
        fate < CAPTURED
          ? { kind: 'capture', ...this.#request, holdId, amount: cost }
          : { kind: 'release', ...this.#request, holdId, note: 'the job failed' },
    });
    this.#requests.push({ ...request, followUp });
  }

  #hold(at: Instant, amount: number, expiresInSeconds: number): DemoRequest {
    const note = `job ${Math.floor(this.#random.between(1_000, 10_000))}`;
    return { at: Math.floor(at), command: { kind: 'hold', ...this.#request, amount, expiresInSeconds, note } };
  }

  #byDay(at: Instant): Instant {
    let share = this.#random.next() * HOURS_SUM;
    let hour = 0;
    while (share >= (HOURS[hour] as number)) {
      share -= HOURS[hour] as number;
      hour += 1;
    }
    return startOfDay(at) + hour * HOUR_MS + Math.floor(this.#random.next() * HOUR_MS);
  }
}

function startOfDay(at: Instant): Instant {
  return Math.floor(at / DAY_MS) * DAY_MS;
}
