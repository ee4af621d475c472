// Batches that have been sent to the writer and are not answered yet. Each has its instant, or takes it at any moment, and
// nobody sees yet what it does: a renewal that is shown meanwhile could have transactions come before it.

import type { Command, EndUserKey } from '../../ledger/command.ts';
import { StoreFault } from '../store.ts';

export interface BatchUnderWay {
  readonly commands: readonly Command[];
  /** Hardly ever does anybody wait for it. */
  ended: PromiseWithResolvers<void> | null;
  /** Whether the writer could not say what became of it. */
  isLost: boolean;
}

export class WritesUnderWay {
  /** Three at the most, but for those that are lost. */
  readonly #batches = new Set<BatchUnderWay>();

  begin(commands: readonly Command[]): BatchUnderWay {
    const batch = { commands, ended: null, isLost: false };
    this.#batches.add(batch);
    return batch;
  }

  /** It is answered: what it did is seen, or it did nothing. */
  end(batch: BatchUnderWay): void {
    this.#batches.delete(batch);
    batch.ended?.resolve();
  }

  lose(batch: BatchUnderWay): void {
    batch.isLost = true;
    batch.ended?.resolve();
  }

  /** What became of those that were lost is seen by whoever reads. */
  find(): void {
    for (const batch of this.#batches) if (batch.isLost) this.end(batch);
  }

  /**
   * Resolves when one that concerns this end user is answered; null when there is none.
   *
   * @throws StoreFault when what became of it is not known
   */
  of({ account, endUser }: EndUserKey): Promise<void> | null {
    for (const batch of this.#batches) {
      if (!batch.commands.some((command) => command.endUser === endUser && command.account === account)) continue;
      if (batch.isLost)
        throw new StoreFault('StoreUnavailable', 'what became of a write of this end user is not known');
      batch.ended ??= Promise.withResolvers();
      return batch.ended.promise;
    }
    return null;
  }
}
