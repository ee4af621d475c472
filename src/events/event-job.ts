// Two background jobs. The first job derives events, which the store saves together with the summaries of end users.
// The second job deletes events that are older than the retention time.

import { IntervalJob } from '../batching/interval-job.ts';
import { PacedJob } from '../batching/paced-job.ts';
import type { EventLog } from '../store/event-log.ts';
import { deriveEvents } from './derive.ts';

/** Maximum number of calls to `deleteExpired` per second, so that the store is free for writes most of the time. */
const DELETIONS_MAX = 10;

/** @param onEvents called after new events have been stored */
export function eventJob(log: EventLog, onEvents: () => void, onTrouble: (error: unknown) => void): PacedJob {
  return new PacedJob(async () => {
    let derived = 0;
    const isMore = await log.deriveNext((input) => {
      const derivation = deriveEvents(input);
      derived += derivation.events.length;
      return derivation;
    });
    if (derived > 0) onEvents();
    return isMore;
  }, onTrouble);
}

export function eventSweep(log: EventLog, retentionMs: number, onTrouble: (error: unknown) => void): IntervalJob {
  return new IntervalJob(async (stopping) => {
    for (let step = 0; step < DELETIONS_MAX && !stopping.aborted; step++)
      if (!(await log.deleteExpired(retentionMs))) return;
  }, onTrouble);
}
