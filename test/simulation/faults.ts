// The faults of a simulation and their rates. Each seed disables a random half of the faults, so that frequent faults
// do not always hide rare ones.

import type { Chance } from './chance.ts';

const RATE_MAX = 0.1;

export const FAULTS = [
  'a write fails before it begins',
  'a write fails before its commit',
  'a commit fails but is stored',
  'a commit fails and is not stored',
  'a reply to a commit is lost, and the batch is found',
  'a reply to a commit is lost, and the batch runs again',
  'a batch is decided twice',
  'a write stalls',
  'a commit stalls',
  'the store is unavailable for a while',
  'a read fails',
  'a read stalls',
  'the lookup of an API key fails',
  'due end users cannot be listed',
  'expired records cannot be deleted',
  'the feed cannot be read',
  'the position in the feed cannot be saved',
  'a process crashes',
  'a process crashes during a write',
  'a request is lost',
  'a request arrives twice',
  'a request is late',
  'a reply is lost',
  'a reply is late',
  'a client disconnects',
  'the clock jumps forward',
  'the clock jumps to a boundary',
  'a cycle renews or a hold lapses during a commit',
  'the clock jumps back',
] as const;

export type Fault = (typeof FAULTS)[number];

export class Faults {
  readonly counts = new Map<Fault, number>();
  readonly #chance: Chance;
  readonly #rates: Map<Fault, number>;
  #isOver = false;

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#rates = new Map(chance.half(FAULTS).map((fault) => [fault, chance.share() ** 2 * RATE_MAX]));
  }

  strikes(fault: Fault): boolean {
    if (this.#isOver) return false;
    const happens = this.#chance.happens(this.#rates.get(fault) ?? 0);
    if (happens) this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    return happens;
  }

  end(): void {
    this.#isOver = true;
  }

  get isOver(): boolean {
    return this.#isOver;
  }
}
