// Caches the end users that were read last, because applications often read a balance again before it changes. A cached
// state is dropped as soon as a batch with a command for its end user has been written.

import { type EndUserKey, endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { liveState, sizeOf } from '../../../ledger/state.ts';
import { type Balances, MANY_CYCLES } from './end-user-reader.ts';

/**
 * Maximum size of a generation, in cycles, holds and end users together. With one cycle per end user, two full
 * generations take 19 MB.
 */
export const GENERATION_MAX = 20_000;

export class RecentReads {
  /** The balances by `endUserText`. If the young generation is full, it replaces the old one. */
  #young = new Map<string, Balances>();
  #old = new Map<string, Balances>();
  #youngSize = 0;

  /** @param read reads the end user from the file; called if the end user is not in the cache */
  balancesOf(user: EndUserKey, now: Instant, read: () => Balances): Balances {
    const name = endUserText(user);
    const young = this.#young.get(name);
    if (young !== undefined) return balancesAt(now, young);
    const balances = this.#old.get(name) ?? read();
    // `EndUserReader` caches end users with many cycles.
    if (sizeOf(balances.state) < MANY_CYCLES) this.#add(name, balances);
    return balancesAt(now, balances);
  }

  drop(user: EndUserKey): void {
    if (this.#young.size + this.#old.size === 0) return;
    const name = endUserText(user);
    const young = this.#young.get(name);
    if (young !== undefined) this.#youngSize -= costOf(young);
    this.#young.delete(name);
    this.#old.delete(name);
  }

  #add(name: string, balances: Balances): void {
    this.#young.set(name, balances);
    this.#youngSize += costOf(balances);
    if (this.#youngSize < GENERATION_MAX) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngSize = 0;
  }
}

function costOf({ state }: Balances): number {
  return 1 + sizeOf(state);
}

function balancesAt(now: Instant, { state, latestPosting }: Balances): Balances {
  return { state: liveState(state, now), latestPosting };
}
