// A fair queue for reading the pages of long lists, a few pages at a time. Without the queue, if clients requested 500
// lists at once, Scrip would read them all in one turn of the event loop, and every other request would wait.

import { FairQueue } from '../../batching/fair-queue.ts';
import { CANCELED, type Requester } from '../../batching/group-commit.ts';
import { PAGES_AT_ONCE } from '../limits.ts';

interface Waiting {
  readonly requester: Requester | null;
  readonly begin: () => void;
  readonly cancel: () => void;
}

export class PageQueue {
  readonly #waiting = new FairQueue<Waiting>();
  #reading = 0;

  /**
   * @param requester the connection of the client; null to read the page even if the client disconnects
   * @throws CANCELED if the client disconnects before the read begins; otherwise, any error that `read` throws
   */
  async read<Page>(account: number, requester: Requester | null, read: () => Promise<Page>): Promise<Page> {
    if (this.#reading >= PAGES_AT_ONCE || this.#waiting.length > 0)
      await new Promise<void>((begin, reject) =>
        this.#waiting.push(account, { requester, begin, cancel: () => reject(CANCELED) }),
      );
    else if (requester?.isDisconnected) throw CANCELED;
    else this.#reading += 1;
    try {
      return await read();
    } finally {
      setImmediate(() => this.#makeRoom());
    }
  }

  #makeRoom(): void {
    this.#reading -= 1;
    while (this.#reading < PAGES_AT_ONCE) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      if (next.requester?.isDisconnected) next.cancel();
      else {
        this.#reading += 1;
        next.begin();
      }
    }
  }
}
