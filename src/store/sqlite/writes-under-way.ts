// Batches that have been sent to the writer and are not answered yet. Each has its instant, or takes it at any moment, and
// nobody sees yet what it does: a renewal that is shown meanwhile could have transactions come before it.

import type { Command, EndUserKey } from '../../ledger/command.ts';
import { StoreFault } from '../store.ts';

export interface BatchUnderWay {
  /** It is answered: what it did is seen, or it did nothing. */
  end(): void;
  /** The writer could not say what became of it. */
  lose(): void;
}

interface Batch {
  readonly commands: readonly Command[];
  readonly ended: PromiseWithResolvers<void>;
  isLost: boolean;
}

export class WritesUnderWay {
  /** Three at the most, but for those that are lost. */
  readonly #batches = new Set<Batch>();

  begin(commands: readonly Command[]): BatchUnderWay {
    const batch: Batch = { commands, ended: Promise.withResolvers(), isLost: false };
    this.#batches.add(batch);
    return {
      end: () => this.#end(batch),
      lose: () => {
        batch.isLost = true;
        batch.ended.resolve();
      },
    };
  }

  /** What became of those that were lost is seen by whoever reads. */
  find(): void {
    for (const batch of this.#batches) if (batch.isLost) this.#end(batch);
  }

  /**
   * Resolves when one that concerns this end user is answered; null when there is none.
   *
   * @throws StoreFault when what became of it is not known
   */
  of({ account, endUser }: EndUserKey): Promise<void> | null {
    for (const { commands, ended, isLost } of this.#batches) {
      if (!commands.some((command) => command.endUser === endUser && command.account === account)) continue;
      if (isLost) throw new StoreFault('StoreUnavailable', 'what became of a write of this end user is not known');
      return ended.promise;
    }
    return null;
  }

  #end(batch: Batch): void {
    this.#batches.delete(batch);
    batch.ended.resolve();
  }
}
