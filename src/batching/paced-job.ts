// Background work that must not slow down requests. After each step, the job pauses for several times the duration of
// the step.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { IntervalJob } from './interval-job.ts';
import { LOAD } from './load.ts';

/** If the work is at least `lateMs` late, the job pauses after each step for `pause` times the duration of the step. */
interface Pace {
  readonly lateMs: number;
  readonly pause: number;
}

/** While the process is not busy, the job runs 20% to 50% of the time, and usually catches up within seconds. */
const PACES: readonly Pace[] = [
  { lateMs: 30_000, pause: 1 },
  { lateMs: 10_000, pause: 2 },
  { lateMs: 1_000, pause: 3 },
  { lateMs: 0, pause: 4 },
];
/**
 * While the process is busy, the job gets 1% of the time, so that it hardly delays requests. If its work is 30 seconds
 * late, the job gets 5% of the time; if 5 minutes late, 10%; and if 30 minutes late, 20%.
 */
const BUSY_PACES: readonly Pace[] = [
  { lateMs: 1_800_000, pause: 4 },
  { lateMs: 300_000, pause: 9 },
  { lateMs: 30_000, pause: 19 },
  { lateMs: 0, pause: 99 },
];

/** How often an idle job looks for work. */
const LOOK_EVERY_MS = 500;
/** How often a paused job checks the load. If a process is busy only at times, less frequent checks delay events. */
const CHECK_EVERY_MS = 50;

export class PacedJob extends IntervalJob {
  readonly #load: Pick<typeof LOAD, 'isBusy'>;
  /**
   * When the job last began a step that left no work, from `performance.now`. Until there is such a step, the time at
   * which the job was created.
   */
  #caughtUpAtMs = performance.now();

  /**
   * @param step does some of the work, and returns whether there might be more work; null if another process is doing
   * the work
   * @param onTrouble called when a run fails, unless the previous run failed too
   * @param load replaced in tests
   */
  constructor(
    step: () => Promise<boolean | null>,
    onTrouble: (error: unknown) => void,
    load: Pick<typeof LOAD, 'isBusy'> = LOAD,
  ) {
    super(
      async (stopping) => {
        for (let isMore: boolean | null = true; isMore && !stopping.aborted; ) {
          const began = performance.now();
          isMore = await step();
          if (isMore) await this.#pauseAfter(began, stopping);
          else if (isMore === false) this.#caughtUpAtMs = began;
        }
      },
      onTrouble,
      LOOK_EVERY_MS,
    );
    this.#load = load;
  }

  /** Checks the load at intervals during the pause, so that the pause becomes shorter if the load falls. */
  async #pauseAfter(began: number, stopping: AbortSignal): Promise<void> {
    const ended = performance.now();
    const stepMs = ended - began;
    for (;;) {
      const leftMs = pauseFor(this.lateMs(), this.#load.isBusy()) * stepMs - (performance.now() - ended);
      if (leftMs <= 0 || stopping.aborted) return;
      await sleep(Math.min(leftMs, CHECK_EVERY_MS), undefined, { signal: stopping }).catch(() => {});
    }
  }

  /** Milliseconds since the job was last caught up. No work has been waiting for longer than this. */
  lateMs(): number {
    return performance.now() - this.#caughtUpAtMs;
  }
}

/** @returns the pause after a step, as a multiple of the duration of the step */
export function pauseFor(lateMs: number, isBusy: boolean): number {
  const pace = (isBusy ? BUSY_PACES : PACES).find((each) => lateMs >= each.lateMs);
  assert(pace, 'a pace is defined for every delay');
  return pace.pause;
}
