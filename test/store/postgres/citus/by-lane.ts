// Lets a test write commands for several Citus shards in one call.

import type { Command, Outcome } from '../../../../src/ledger/command.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';

/** Writes one batch per lane, as group commit does, because a batch may use only one shard. */
export function byLane(store: LedgerStore): LedgerStore {
  const writeBatch = store.write.bind(store);
  const write: LedgerStore['write'] = async (commands, onDecided) => {
    const outcomes = commands.map((): Outcome | null => null);
    const indices = Map.groupBy(commands.keys(), (index) => store.lanes.of(commands[index] as Command));
    for (const those of indices.values()) {
      const batch = those.map((index) => commands[index] as Command);
      const written = await writeBatch(batch, onDecided);
      for (const [place, index] of those.entries()) outcomes[index] = written[place] as Outcome | null;
    }
    return outcomes;
  };
  return Object.assign(store, { write });
}
