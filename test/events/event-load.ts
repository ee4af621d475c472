// The load of the event tests consists of small writes and clock moves, so that balances cross thresholds, credits
// expire, cycles renew and holds lapse.

import { setTimeout as sleep } from 'node:timers/promises';
import { below, type Random } from '../crash/randomness.ts';
import { KnownTransactions, type Sent, someKind } from '../crash/requests.ts';

const CLIENTS = 6;
const END_USERS = 40;
/** Clients add about as much as they spend, so that balances stay near the thresholds. */
const ADDITION_MAX = 400;
/** Some of these validities are shorter than the notice period of `credits.expiring`, and some are longer. */
const VALIDITY_DAYS = [1, 3, 8, 10, 31];
const CYCLE_DAYS = [1, 2, 8];
const PAUSE_MS_MAX = 15;
const MOVE_PAUSE_MS_MAX = 600;
const MOVE_MS_MAX = 12 * 3_600_000;
const SMALL_MOVES_SHARE = 0.3;
const SMALL_MOVE_MS_MAX = 2_000;

export interface Target {
  readonly urls: readonly string[];
  readonly secret: string;
}

export class EventLoad {
  readonly #target: Target;
  readonly #random: Random;
  readonly #endUsers = Array.from({ length: END_USERS }, () => crypto.randomUUID());
  readonly #known = new KnownTransactions();
  #isStopped = false;
  #clients: Promise<unknown> = Promise.resolve();
  acknowledged = 0;
  clockMoves = 0;

  constructor(target: Target, random: Random) {
    this.#target = target;
    this.#random = random;
  }

  start(): void {
    const clients = Array.from({ length: CLIENTS }, (_, index) => this.#runClient(index));
    this.#clients = Promise.all([...clients, this.#moveClock()]);
  }

  /** A kill may have interrupted a clock move, so a final move triggers all due renewals and lapses. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#clients;
    while (!(await this.#move(1))) await sleep(MOVE_PAUSE_MS_MAX);
  }

  async #runClient(index: number): Promise<void> {
    const url = this.#urlOf(index);
    while (!this.#isStopped) {
      const endUser = this.#endUsers[below(END_USERS, this.#random)] as string;
      const { kind, fields } = this.#draw(endUser);
      const answer = await this.#post(`${url}/${kind}`, { end_user_id: endUser, ...fields });
      if (answer?.status === 200) this.acknowledged += 1;
      this.#known.learn({ kind, endUser, answer });
      await sleep(this.#random() * PAUSE_MS_MAX);
    }
  }

  #draw(endUser: string): Pick<Sent, 'kind' | 'fields'> {
    const { kind, fields } = this.#known.draw(someKind(this.#random), endUser, this.#random);
    if (kind !== 'add' && kind !== 'start-cycle') return { kind, fields };
    const amount = 1 + below(ADDITION_MAX, this.#random);
    const days = kind === 'add' ? VALIDITY_DAYS : CYCLE_DAYS;
    const validity_days = days[below(days.length, this.#random)] as number;
    return { kind, fields: { ...fields, amount, validity_days } };
  }

  async #moveClock(): Promise<void> {
    while (!this.#isStopped) {
      await sleep(this.#random() * MOVE_PAUSE_MS_MAX);
      const movedMs = 1 + below(this.#random() < SMALL_MOVES_SHARE ? SMALL_MOVE_MS_MAX : MOVE_MS_MAX, this.#random);
      if (await this.#move(movedMs)) this.clockMoves += 1;
    }
  }

  async #move(movedMs: number): Promise<boolean> {
    const url = this.#urlOf(0);
    const now = await clockOf(url, this.#target.secret).catch(() => null);
    if (now === null) return false;
    const answer = await this.#post(`${url}/test-clock`, { to: new Date(now + movedMs).toISOString() });
    return answer?.status === 200;
  }

  async #post(url: string, body: object): Promise<Sent['answer']> {
    const headers = { authorization: `Bearer ${this.#target.secret}`, 'content-type': 'application/json' };
    try {
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      const text = await response.text();
      const transactionId = response.headers.get('transaction-id');
      return { status: response.status, error: null, isReplayed: false, transactionId, text };
    } catch {
      return null;
    }
  }

  #urlOf(index: number): string {
    const { urls } = this.#target;
    return urls[index % urls.length] as string;
  }
}

export async function clockOf(url: string, secret: string): Promise<number> {
  const response = await fetch(`${url}/test-clock`, { headers: { authorization: `Bearer ${secret}` } });
  const { now } = (await response.json()) as { now: string };
  return Date.parse(now);
}
