// Pages of long lists take turns: one is begun in a turn of the event loop, behind all the short requests that have come,
// and accounts are next to each other as they are everywhere (`fair-line.ts`). Whatever the number of those who read long
// lists, anybody else waits for a page or two. Without this, all that had been asked for in a turn was made in it: 500
// lists held everybody up for seven seconds.

import { FairLine } from '../commit/fair-line.ts';

/** Pages that the store is asked for at once. PostgreSQL is read by 8 connections: half of them are left to short reads. */
export const PAGES_AT_ONCE = 4;

export interface PageReader {
  /** Whose turn it is when it is the reader's. */
  readonly account: number;
  /** Whether nobody waits for the page any more. */
  readonly isGone: boolean;
}

interface Waiting {
  readonly reader: PageReader;
  begin(): void;
  giveUp(): void;
}

export class PageTurns {
  readonly #waiting = new FairLine<Waiting>();
  #underWay = 0;
  #isTurnTaken = false;

  /**
   * Makes a page when it is the reader's turn, which is at once where no other page was begun in this turn.
   *
   * @returns null when the reader has gone before
   * @throws what `make` throws
   */
  take<Page>(reader: PageReader, make: () => Promise<Page>): Promise<Page | null> {
    if (this.#isFree && this.#waiting.length === 0) return this.#begin(make);
    return new Promise((resolve) => {
      this.#waiting.push(reader.account, {
        reader,
        begin: () => resolve(this.#begin(make)),
        giveUp: () => resolve(null),
      });
    });
  }

  get #isFree(): boolean {
    return !this.#isTurnTaken && this.#underWay < PAGES_AT_ONCE;
  }

  async #begin<Page>(make: () => Promise<Page>): Promise<Page> {
    this.#isTurnTaken = true;
    this.#underWay += 1;
    // Behind what has come meanwhile: it is the next turn in which this runs, and sockets are looked at before.
    setImmediate(() => {
      this.#isTurnTaken = false;
      this.#beginNext();
    });
    try {
      return await make();
    } finally {
      this.#underWay -= 1;
      this.#beginNext();
    }
  }

  #beginNext(): void {
    while (this.#isFree) {
      const next = this.#waiting.takeOne(anyone);
      if (next === undefined) return;
      if (next.reader.isGone) next.giveUp();
      else next.begin();
    }
  }
}

function anyone(): boolean {
  return true;
}
