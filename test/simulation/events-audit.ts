// Checks that, despite all faults, a simulation stored exactly the events that a single derivation from all postings
// returns.

import { deriveEvents } from '../../src/events/derive.ts';
import { endUserText } from '../../src/ledger/command.ts';
import type { Instant } from '../../src/ledger/instant.ts';
import type { Derivation, DerivationInput } from '../../src/store/event-log.ts';
import type { Disk } from './disk.ts';
import { eventSettingsOf } from './simulated-events.ts';

export function* faultsOfEvents({ users, events }: Disk): Generator<string> {
  if (!events.areDerived) return;
  for (const { user, postings } of users.values()) {
    const stored = events.users.get(endUserText(user));
    if (stored === undefined) {
      if (postings.length > 0) yield `no events of ${user.endUser} are stored`;
      continue;
    }
    const settings = eventSettingsOf(user);
    const derived = derivedUntil(stored.next.at, { user, from: null, postings, settings });
    const place = derived.events.findIndex(({ id }, index) => stored.events[index]?.id !== id);
    if (place >= 0 || stored.events.length > derived.events.length)
      yield `event ${place} of ${user.endUser} is ${JSON.stringify(stored.events.at(place))} instead of ${JSON.stringify(derived.events.at(place))}`;
    else if (JSON.stringify(stored.events) !== JSON.stringify(derived.events))
      yield `the data of an event of ${user.endUser} differs from its postings`;
    if (stored.dueAt !== derived.dueAt) yield `the next event of ${user.endUser} should be due at ${derived.dueAt}`;
  }
}

/** Calls `deriveEvents` until no event is due: one call may return only some of the events after the last posting. */
function derivedUntil(until: Instant, input: Omit<DerivationInput, 'until'>): Derivation {
  const derived = deriveEvents({ ...input, until });
  const { events, next, dueAt } = derived;
  if (dueAt === null || dueAt > until) return derived;
  const later = derivedUntil(until, { ...input, from: next, postings: [] });
  return { ...later, events: [...events, ...later.events] };
}
