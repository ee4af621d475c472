// Background work that must not slow down requests. After each step, the job pauses for several times the duration of
// the step.

import { setTimeout as sleep } from 'node:timers/promises';
import { IntervalJob } from './interval-job.ts';
import { LOAD } from './load.ts';

/** The pause after a step, as a multiple of the duration of the step. */
const PAUSE = 4;
/** The pauses while the process is busy. They get shorter when the work is late, so that the job catches up. */
const BUSY_PAUSES: readonly { readonly lateMs: number; readonly pause: number }[] = [
  { lateMs: 300_000, pause: 1 },
  { lateMs: 30_000, pause: PAUSE },
  { lateMs: 0, pause: 19 },
];

/** How often the job looks for work when there is none. */
const LOOK_EVERY_MS = 500;

export class PacedJob extends IntervalJob {
  readonly #load: Pick<typeof LOAD, 'isBusy'>;
  /** When the last step began that left no more work, from `performance.now`; initially, when the job was created. */
  #caughtUpAtMs = performance.now();

  /**
   * @param step does some of the work, and returns whether there may be more work
   * @param onTrouble called when a round fails, unless the previous round failed too
   * @param load replaced by tests
   */
  constructor(
    step: () => Promise<boolean>,
    onTrouble: (error: unknown) => void,
    load: Pick<typeof LOAD, 'isBusy'> = LOAD,
  ) {
    super(
      async (stopping) => {
        let began = performance.now();
        while (!stopping.aborted && (await step())) {
          const pause = this.#pause() * (performance.now() - began);
          await sleep(pause, undefined, { signal: stopping }).catch(() => {});
          began = performance.now();
        }
        if (!stopping.aborted) this.#caughtUpAtMs = began;
      },
      onTrouble,
      LOOK_EVERY_MS,
    );
    this.#load = load;
  }

  #pause(): number {
    if (!this.#load.isBusy()) return PAUSE;
    const late = this.lateMs();
    return BUSY_PAUSES.find(({ lateMs }) => late >= lateMs)?.pause ?? PAUSE;
  }

  /** Milliseconds since the job last had nothing to do. No work has waited longer. */
  lateMs(): number {
    return performance.now() - this.#caughtUpAtMs;
  }
}
