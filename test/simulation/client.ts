// A client that retries as the documentation recommends. Without an idempotency key, it repeats a write only if the
// connection was refused or the response says that nothing happened.

import type { Attempt } from './auditor.ts';
import type { Chance } from './chance.ts';
import type { Reply } from './connection.ts';
import type { Operation } from './operation.ts';
import type { VirtualTime } from './virtual-time.ts';

export type Heard = Reply | 'refused' | 'cut';

export interface ClientPorts {
  readonly time: VirtualTime;
  readonly chance: Chance;
  nextOperation(client: Client): Operation | null;
  attempt(operation: Operation): Attempt;
  send(attempt: Attempt, hear: (heard: Heard) => void): void;
}

const THINK_MS = 60;
/** The mean of the first backoff; each retry doubles the mean. */
const BACKOFF_MS = 150;
const BACKOFF_MS_MAX = 2_400;
/** The mean of the random delay that clients add to `Retry-After`, so that they do not all retry at once. */
const RETURN_SPREAD_MS = 250;
const PATIENCE_MS = 4_000;

export class Client {
  readonly number: number;
  isDone = false;
  readonly counts = { requests: 0, unknown: 0 };
  readonly #ports: ClientPorts;

  constructor(number: number, ports: ClientPorts) {
    this.number = number;
    this.#ports = ports;
    ports.time.after(ports.chance.delay(THINK_MS), () => this.#next(), null);
  }

  #next(): void {
    const operation = this.#ports.nextOperation(this);
    if (operation === null) this.isDone = true;
    else this.#try(operation, BACKOFF_MS);
  }

  #try(operation: Operation, backoffMs: number): void {
    const { time, chance } = this.#ports;
    const attempt = this.#ports.attempt(operation);
    this.counts.requests += 1;
    let isOver = false;
    const hear = (heard: Heard) => {
      if (isOver) return;
      isOver = true;
      patience.act = null;
      if (this.#isAnswer(operation, heard)) return void time.after(chance.delay(THINK_MS), () => this.#next(), null);
      const again = () => this.#try(operation, Math.min(2 * backoffMs, BACKOFF_MS_MAX));
      const toldMs = typeof heard === 'string' ? 0 : 1_000 * Number(heard.headers['retry-after'] ?? 0);
      time.after(toldMs > 0 ? toldMs + chance.delay(RETURN_SPREAD_MS) : chance.delay(backoffMs), again, null);
    };
    const patience = time.after(PATIENCE_MS, () => hear('cut'), null);
    this.#ports.send(attempt, hear);
  }

  #isAnswer({ sent }: Operation, heard: Heard): boolean {
    const isSafe = sent.method === 'GET' || sent.idempotencyKey !== null;
    if (heard === 'refused') return false;
    if (heard === 'cut') {
      if (!isSafe) this.counts.unknown += 1;
      return !isSafe;
    }
    if (heard.status !== 503) return true;
    if (isSafe || heard.headers['retry-after'] !== undefined) return false;
    this.counts.unknown += 1;
    return true;
  }
}
