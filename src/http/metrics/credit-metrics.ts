// Counts the credits that accepted requests grant and spend, for each account, API key and kind of request. A request
// is counted when its write is durable; replays, renewals and scheduled plans are not counted. Refunded credits count
// as granted, because a counter must never decrease. The counters start at 0 in each new process, so they do not show
// balances.

import { Counter, type Registry } from 'prom-client';
import type { Accepted, HoldResult, RefundResult, WriteCommand } from '../../ledger/command.ts';

/**
 * Maximum number of actors (API keys and console users) that are counted separately. An actor has at most 5 series, one
 * per kind of request, so a thousand actors have at most 5,000 series. Further actors are counted together: their
 * `account` and `key` labels are `other`.
 */
export const COUNTED_CALLERS_MAX = 1_000;

const OTHERS = 'other';
/** The value of the `key` label for changes made in the console. */
const CONSOLE = 'console';
const OF_KEY = /^key:(\d+)$/;

const KINDS = { granted: ['add', 'start-cycle', 'refund'], spent: ['subtract', 'capture'] } as const;
type CountedKind = (typeof KINDS)[keyof typeof KINDS][number];

interface Sums {
  readonly labels: { readonly account: string; readonly key: string };
  readonly credits: Record<CountedKind, number>;
}

export class CreditMetrics {
  readonly #sums = new Map<string, Sums>();
  readonly #others = noCredits(OTHERS, OTHERS);

  constructor(registry: Registry) {
    this.#register(registry, 'scrip_credits_granted_total', 'Credits granted by requests', KINDS.granted);
    this.#register(registry, 'scrip_credits_spent_total', 'Credits spent by requests', KINDS.spent);
  }

  /** @param command an accepted command that is not a replay */
  count(command: WriteCommand, accepted: Accepted): void {
    switch (command.kind) {
      case 'add':
      case 'subtract':
        this.#sumsOf(command).credits[command.kind] += command.amount;
        break;
      case 'start-cycle':
        if (!isScheduled(accepted)) this.#sumsOf(command).credits['start-cycle'] += command.amount;
        break;
      case 'capture':
        this.#sumsOf(command).credits.capture += (accepted.hold as HoldResult).captured;
        break;
      case 'refund':
        this.#sumsOf(command).credits.refund += (accepted.refund as RefundResult).restored;
        break;
      default:
        command.kind satisfies 'stop-cycle' | 'hold' | 'release';
    }
  }

  #sumsOf({ account, actor }: WriteCommand): Sums {
    const known = this.#sums.get(actor);
    if (known) return known;
    if (this.#sums.size === COUNTED_CALLERS_MAX) return this.#others;
    const sums = noCredits(String(account), OF_KEY.exec(actor)?.[1] ?? CONSOLE);
    this.#sums.set(actor, sums);
    return sums;
  }

  #register(registry: Registry, name: string, help: string, kinds: readonly CountedKind[]): void {
    const metric: Counter<'account' | 'key' | 'kind'> = new Counter({
      name,
      help: `${help}, by account, API key and kind of request`,
      labelNames: ['account', 'key', 'kind'],
      registers: [registry],
      collect: () => {
        metric.reset();
        for (const { labels, credits } of [...this.#sums.values(), this.#others]) {
          if (Object.values(credits).every((sum) => sum === 0)) continue;
          for (const kind of kinds) metric.inc({ ...labels, kind }, credits[kind]);
        }
      },
    });
  }
}

/** Whether `/start-cycle` only scheduled a plan. A scheduled plan grants no credits until the current period ends. */
function isScheduled({ cycle }: Accepted): boolean {
  return cycle !== undefined && cycle.next !== null;
}

function noCredits(account: string, key: string): Sums {
  return { labels: { account, key }, credits: { add: 0, 'start-cycle': 0, refund: 0, subtract: 0, capture: 0 } };
}
