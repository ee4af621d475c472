// Checks that a simulation, with all its faults, stored the same events as a derivation from all postings in one step.

import { deriveEvents } from '../../src/events/derive.ts';
import { endUserText } from '../../src/ledger/command.ts';
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
    const derived = deriveEvents({ user, from: null, postings, until: stored.next.at, settings });
    const place = derived.events.findIndex(({ id }, index) => stored.events[index]?.id !== id);
    if (place >= 0 || stored.events.length > derived.events.length)
      yield `event ${place} of ${user.endUser} is ${JSON.stringify(stored.events.at(place))} instead of ${JSON.stringify(derived.events.at(place))}`;
    else if (JSON.stringify(stored.events) !== JSON.stringify(derived.events))
      yield `the data of an event of ${user.endUser} differs from its postings`;
    if (stored.dueAt !== derived.dueAt) yield `the next event of ${user.endUser} is due at ${derived.dueAt}`;
  }
}
