// The clock of the machine of the store. It advances with virtual time and sometimes jumps.

import { DAY_MS, HOUR_MS, type Instant } from '../../src/ledger/instant.ts';
import type { Chance } from './chance.ts';
import type { Disk } from './disk.ts';
import type { Faults } from './faults.ts';
import type { VirtualTime } from './virtual-time.ts';

const BEGIN = Date.UTC(2026, 0, 15, 9, 30, 0, 123);
/** The maximum sum of all jumps except the last one. It is limited because a daily cycle renews once for each day. */
const DAYS_MAX = 60;
const STANDSTILL_MS = 150;
const BOUNDARIES_NEAR = 4;

export class MachineClock {
  /** The sum of all jumps forward, in days. */
  days = 0;
  readonly #time: VirtualTime;
  readonly #onJump: (instant: Instant) => void;
  /** The difference between this clock and virtual time. */
  #offset = BEGIN;
  /** The virtual time until which the clock is frozen. */
  #standsUntil = 0;

  constructor(time: VirtualTime, onJump: (instant: Instant) => void) {
    this.#time = time;
    this.#onJump = onJump;
  }

  /** The time of the clock, not always in whole milliseconds. */
  now(): number {
    return this.#offset + Math.max(this.#time.now, this.#standsUntil);
  }

  /** @param standsMs how long the clock is frozen after the jump, so that requests happen at exactly that instant */
  jump(disk: Disk, to: number, standsMs = 0): void {
    const instant = Math.max(0, Math.floor(to));
    this.days += Math.max(0, instant - disk.peek()) / DAY_MS;
    this.#standsUntil = this.#time.now + standsMs;
    this.#offset = instant - this.#standsUntil;
    this.#onJump(instant);
  }

  /** Gives each kind of jump one chance to happen. */
  mayJump(disk: Disk, chance: Chance, faults: Faults): void {
    if (faults.strikes('the clock jumps back')) {
      this.jump(disk, this.now() - chance.pick([1, 1_000, HOUR_MS, DAY_MS, 400 * DAY_MS]) * chance.share());
    }
    if (this.days > DAYS_MAX) return;
    if (faults.strikes('the clock jumps forward')) {
      this.jump(disk, disk.peek() + chance.pick([1_000, HOUR_MS, DAY_MS, 40 * DAY_MS]) * chance.share());
    }
    if (faults.strikes('the clock jumps to a boundary')) {
      const ends = disk.boundariesAfter(disk.peek()).slice(0, BOUNDARIES_NEAR);
      if (ends.length > 0) this.jump(disk, chance.pick(ends) + chance.between(-1, 1), chance.delay(STANDSTILL_MS));
    }
  }

  /**
   * Jumps to the next instant at which a cycle of one of these end users renews or a hold lapses, unless the limit on
   * jumps is reached.
   */
  passTimeOf(names: readonly string[], disk: Disk): void {
    const next = this.days > DAYS_MAX ? null : disk.nextEventOf(names);
    if (next !== null) this.jump(disk, next);
  }
}
