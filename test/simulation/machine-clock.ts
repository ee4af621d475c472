// The clock of the machine that runs the store: it advances with virtual time, and sometimes jumps.

import { DAY_MS, HOUR_MS, type Instant } from '../../src/ledger/instant.ts';
import { nextDay } from '../model/model-calendar.ts';
import type { Chance } from './chance.ts';
import type { Disk } from './disk.ts';
import type { Faults } from './faults.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Most are near the end of a month, because some months lack the 29th, 30th or 31st. */
export const BEGINNINGS: readonly Instant[] = [
  Date.UTC(2026, 0, 15, 9, 30, 0, 123),
  Date.UTC(2026, 0, 31),
  Date.UTC(2026, 4, 31, 9, 30, 0, 123),
  Date.UTC(2027, 11, 31, 23, 59, 59, 999),
  Date.UTC(2028, 0, 30, 23, 59, 30),
  Date.UTC(2028, 1, 28, 23, 59, 50),
];
/** Limits the sum of all forward jumps, and thereby the number of renewals of a daily cycle. */
const DAYS_MAX = 130;
const STANDSTILL_MS = 150;
const MONTH_END_SHARE = 0.4;
const BOUNDARIES_NEAR = 4;
/**
 * A boundary is the end of a period or hold. This share of the jumps to a boundary can reach any boundary within the
 * next `FAR_MS`; the other jumps reach one of the next `BOUNDARIES_NEAR` boundaries. The next boundaries usually belong
 * to daily cycles, so without far jumps, hardly any jump would reach the end of a monthly period.
 */
const FAR_SHARE = 0.4;
const FAR_MS = 32 * DAY_MS;

export class MachineClock {
  days = 0;
  readonly #time: VirtualTime;
  readonly #onJump: (instant: Instant) => void;
  #offset: number;
  /** The clock stands still until this instant of virtual time. */
  #standsUntil = 0;

  constructor(time: VirtualTime, beginning: Instant, onJump: (instant: Instant) => void) {
    this.#time = time;
    this.#offset = beginning;
    this.#onJump = onJump;
  }

  /** Milliseconds since 1970, possibly with a fraction. */
  now(): number {
    return this.#offset + Math.max(this.#time.now, this.#standsUntil);
  }

  jump(disk: Disk, to: number, standsMs = 0): void {
    const instant = Math.max(0, Math.floor(to));
    this.days += Math.max(0, instant - disk.peek()) / DAY_MS;
    this.#standsUntil = this.#time.now + standsMs;
    this.#offset = instant - this.#standsUntil;
    this.#onJump(instant);
  }

  mayJump(disk: Disk, chance: Chance, faults: Faults): void {
    if (faults.strikes('the clock jumps back')) {
      this.jump(disk, this.now() - chance.pick([1, 1_000, HOUR_MS, DAY_MS, 400 * DAY_MS]) * chance.share());
    }
    if (this.days > DAYS_MAX) return;
    if (faults.strikes('the clock jumps forward')) {
      const isToMonthEnd = chance.happens(MONTH_END_SHARE);
      const ms = isToMonthEnd ? 0 : chance.pick([1_000, HOUR_MS, DAY_MS, 40 * DAY_MS]) * chance.share();
      this.jump(disk, isToMonthEnd ? nextDay(disk.peek(), chance.pick([29, 30, 31, 31]), 0) : disk.peek() + ms);
    }
    if (faults.strikes('the clock jumps to a boundary')) {
      const all = disk.boundariesAfter(disk.peek());
      const isFar = chance.happens(FAR_SHARE);
      const ends = isFar ? all.filter((end) => end < disk.peek() + FAR_MS) : all.slice(0, BOUNDARIES_NEAR);
      if (ends.length > 0) this.jump(disk, chance.pick(ends) + chance.between(-1, 1), chance.delay(STANDSTILL_MS));
    }
  }

  passTimeOf(names: readonly string[], disk: Disk): void {
    const next = this.days > DAYS_MAX ? null : disk.nextEventOf(names);
    if (next !== null) this.jump(disk, next);
  }
}
