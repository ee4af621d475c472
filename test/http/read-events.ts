// Reads an account's events, and waits until there are enough of them, because the service derives events in the
// background.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scrip } from './running-service.ts';

export interface EventBody {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventListBody {
  readonly events: readonly EventBody[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

const WAIT_MS = 10_000;
const POLL_MS = 20;

export async function eventsOf(scrip: Scrip, count: number, key = scrip.writeKey): Promise<readonly EventBody[]> {
  const events: EventBody[] = [];
  for (let deadline = performance.now() + WAIT_MS, after = ''; events.length < count; ) {
    const { status, text } = await scrip.get('/get-events', after === '' ? {} : { after }, { key });
    assert.equal(status, 200, text);
    const page = JSON.parse(text) as EventListBody;
    events.push(...page.events);
    after = page.next_cursor;
    if (page.has_more) continue;
    assert(performance.now() < deadline, `${events.length} of ${count} events: ${JSON.stringify(events)}`);
    await sleep(POLL_MS);
  }
  return events;
}
