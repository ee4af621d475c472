// Counts the credits that accepted requests granted and spent, by account and API key. The labels are numbers that
// Scrip assigned, and the number of series is bounded. A request is counted when its write is durable; replays and
// renewals are not counted. The counters start at 0 with the process, so an account's balance cannot be computed from
// them.

import { Counter, type Registry } from 'prom-client';
import type { WriteCommand } from '../../ledger/command.ts';

/** Actors with their own counts, in at most 2,000 series. The credits of all further actors are counted together. */
export const COUNTED_CALLERS_MAX = 1_000;

const OTHERS = 'other';
/** Label for changes made in the console, instead of the id of an API key. */
const CONSOLE = 'console';
const OF_KEY = /^key:(\d+)$/;

interface Sums {
  readonly labels: { readonly account: string; readonly key: string };
  granted: number;
  spent: number;
}

export class CreditMetrics {
  /** Sums by actor. */
  readonly #sums = new Map<string, Sums>();
  readonly #others: Sums = { labels: { account: OTHERS, key: OTHERS }, granted: 0, spent: 0 };

  constructor(registry: Registry) {
    this.#register(registry, 'scrip_credits_granted_total', 'Credits granted by requests', ({ granted }) => granted);
    this.#register(registry, 'scrip_credits_spent_total', 'Credits spent by requests', ({ spent }) => spent);
  }

  /** @param command an accepted command that is not a replay */
  count(command: WriteCommand): void {
    switch (command.kind) {
      case 'add':
      case 'start-cycle':
        this.#sumsOf(command).granted += command.amount;
        break;
      case 'subtract':
        this.#sumsOf(command).spent += command.amount;
        break;
      default:
        command.kind satisfies 'stop-cycle';
    }
  }

  #sumsOf({ account, actor }: WriteCommand): Sums {
    const known = this.#sums.get(actor);
    if (known) return known;
    if (this.#sums.size === COUNTED_CALLERS_MAX) return this.#others;
    const sums = {
      labels: { account: String(account), key: OF_KEY.exec(actor)?.[1] ?? CONSOLE },
      granted: 0,
      spent: 0,
    };
    this.#sums.set(actor, sums);
    return sums;
  }

  #register(registry: Registry, name: string, help: string, read: (sums: Sums) => number): void {
    const metric: Counter<'account' | 'key'> = new Counter({
      name,
      help: `${help}, by account and API key`,
      labelNames: ['account', 'key'],
      registers: [registry],
      collect: () => {
        metric.reset();
        // All console users of an account share their series.
        for (const sums of [...this.#sums.values(), this.#others])
          if (sums.granted + sums.spent > 0) metric.inc(sums.labels, read(sums));
      },
    });
  }
}
