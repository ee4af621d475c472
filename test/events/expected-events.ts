// Compares the event log with the events that follow from all postings, and with the requests that a receiver got.

import type { Database } from '../../src/config.ts';
import { deriveEvents } from '../../src/events/derive.ts';
import type { EndUserKey } from '../../src/ledger/command.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Posting } from '../../src/ledger/posting.ts';
import { openAccountPostings } from '../../src/open-tools.ts';
import { type EventSettings, eventBody } from '../../src/store/event-log.ts';
import type { Arrival } from './receiver.ts';

export type EventsByUser = ReadonlyMap<string, readonly string[]>;

export interface ListedEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: { readonly end_user_id: string; readonly balance: number };
}

const PAGE = 1_000;

export async function expectedEvents(
  database: Database,
  accountName: string,
  settings: EventSettings,
  until: Instant,
): Promise<EventsByUser> {
  const ledger = await openAccountPostings(database, accountName);
  const users = new Map<string, { readonly user: EndUserKey; readonly postings: Posting[] }>();
  for await (const batch of ledger.batches())
    for (const { user, posting } of batch) {
      const known = users.get(user.endUser) ?? { user, postings: [] };
      known.postings.push(posting);
      users.set(user.endUser, known);
    }
  await ledger.close();
  return new Map(
    [...users].map(([endUser, { user, postings }]) => {
      const { events } = deriveEvents({ user, from: null, postings, until, settings });
      return [endUser, events.map((event) => eventBody({ ...event, data: JSON.stringify(event.data) }))];
    }),
  );
}

export async function readLog(url: string, secret: string): Promise<readonly ListedEvent[]> {
  const events: ListedEvent[] = [];
  for (let after = '', hasMore = true; hasMore; ) {
    const response = await fetch(`${url}/get-events?limit=${PAGE}${after && `&after=${after}`}`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`/get-events returned ${response.status}: ${text}`);
    const page = JSON.parse(text) as { events: ListedEvent[]; next_cursor: string; has_more: boolean };
    events.push(...page.events);
    after = page.next_cursor;
    hasMore = page.has_more;
  }
  return events;
}

export function logProblems(log: readonly ListedEvent[], expected: EventsByUser): string[] {
  const problems: string[] = [];
  const ids = new Set(log.map(({ id }) => id));
  if (ids.size < log.length) problems.push(`${log.length - ids.size} ids are in the log more than once`);
  const logged = byUser(log);
  for (const endUser of new Set([...logged.keys(), ...expected.keys()])) {
    const found = logged.get(endUser) ?? [];
    const wanted = expected.get(endUser) ?? [];
    const place = Array.from({ length: Math.max(found.length, wanted.length) }).findIndex(
      (_, index) => found[index] !== wanted[index],
    );
    if (place === -1) continue;
    problems.push(
      `the log has ${found.length} events of ${endUser} instead of ${wanted.length}; ` +
        `the first difference is ${found[place] ?? 'nothing'} instead of ${wanted[place] ?? 'nothing'}`,
    );
  }
  return problems;
}

/** @param arrivals the requests to one endpoint, in order */
export function arrivalProblems(log: readonly ListedEvent[], arrivals: readonly Arrival[]): string[] {
  const problems: string[] = [];
  const bodies = new Map(log.map((event) => [event.id, JSON.stringify(event)]));
  const first = new Map<string, ListedEvent>();
  for (const { id, body } of arrivals) {
    const expected = bodies.get(id);
    if (expected === undefined) problems.push(`${body} arrived as ${id}, but is not in the log`);
    else if (expected !== body) problems.push(`${id} arrived as ${body}, but is ${expected} in the log`);
    else if (!first.has(id)) first.set(id, JSON.parse(body));
  }
  const missing = log.filter(({ id }) => !first.has(id));
  for (const event of missing) problems.push(`${JSON.stringify(event)} did not arrive`);
  const arrived = byUser([...first.values()]);
  for (const [endUser, wanted] of byUser(log.filter(({ id }) => first.has(id)))) {
    const place = wanted.findIndex((body, index) => arrived.get(endUser)?.[index] !== body);
    if (place !== -1)
      problems.push(`${arrived.get(endUser)?.[place]} arrived before the earlier event ${wanted[place]}`);
  }
  return problems;
}

function byUser(events: readonly ListedEvent[]): Map<string, string[]> {
  const users = new Map<string, string[]>();
  for (const event of events) {
    const known = users.get(event.data.end_user_id) ?? [];
    known.push(JSON.stringify(event));
    users.set(event.data.end_user_id, known);
  }
  return users;
}
