// A background job that derives events, which the store saves together with the summaries of end users.

import { PacedJob } from '../batching/paced-job.ts';
import type { EventLog } from '../store/event-log.ts';
import { deriveEvents } from './derive.ts';

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
