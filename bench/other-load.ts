// Measures the CPU time that other processes use during a benchmark. Results from a busy machine are unreliable.

import { readFileSync } from 'node:fs';

/** `at` is in milliseconds; all other fields are in CPU ticks. `own` includes child processes that have ended. */
interface Ticks {
  readonly at: number;
  readonly busy: number;
  readonly stolen: number;
  readonly own: number;
}

export interface OtherLoad {
  readonly othersCores: number;
  /** The average number of cores that the hypervisor gave to other virtual machines while this one needed them. */
  readonly stolenCores: number;
}

const TICKS_PER_SECOND = 100;

/**
 * Call the returned function after all child processes have ended. The CPU time of a child process that is still
 * running would be attributed to other processes.
 */
export function watchOthers(): () => OtherLoad {
  const before = ticks();
  return () => {
    const after = ticks();
    const all = ((after.at - before.at) / 1_000) * TICKS_PER_SECOND;
    const of = (count: number) => Math.max(0, Math.round((100 * count) / all) / 100);
    const others = after.busy - before.busy - (after.own - before.own);
    return { othersCores: of(others), stolenCores: of(after.stolen - before.stolen) };
  };
}

function ticks(): Ticks {
  const at = performance.now();
  try {
    const [, ...numbers] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] as string).split(/\s+/).map(Number);
    const [user = 0, nice = 0, system = 0, , , interrupts = 0, soft = 0, stolen = 0] = numbers;
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
    const own = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    return { at, busy: user + nice + system + interrupts + soft, stolen, own };
  } catch {
    return { at, busy: 0, stolen: 0, own: 0 };
  }
}
