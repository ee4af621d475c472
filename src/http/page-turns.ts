// Reads of lists take turns, behind all the short requests that have come: some lists begin in a turn of the event loop,
// and one page of those that are longer is made. Accounts are next to each other as they are everywhere (`fair-queue.ts`).
// However many read lists, anybody else waits for a few milliseconds of it. Without this, all that had been asked for in a
// turn was read in it, and 500 lists held everybody up for as long as they were.

import { FairQueue } from '../batching/fair-queue.ts';

/** How many are read in a turn of the event loop, and by the store at the same time. */
export interface TurnBounds {
  readonly aTurn: number;
  readonly atOnce: number;
}

/** How lists begin: the 102 transactions that are read then take 0.3 ms, and most lists are shorter. */
export const BEGINNINGS: TurnBounds = { aTurn: 32, atOnce: Number.POSITIVE_INFINITY };
/** What comes behind. PostgreSQL is read by 8 connections: half of them are left to short reads. */
export const PAGES: TurnBounds = { aTurn: 1, atOnce: 4 };

export interface PageReader {
  /** Whose turn it is when it is the reader's. */
  readonly account: number;
  /** Whether nobody waits for the page any more. */
  readonly isDisconnected: boolean;
}

interface Waiting {
  readonly reader: PageReader;
  begin(): void;
  giveUp(): void;
}

/** One for the process. */
export class ListTurns {
  readonly beginnings = new PageTurns(BEGINNINGS);
  readonly pages = new PageTurns(PAGES);
}

export class PageTurns {
  readonly #bounds: TurnBounds;
  readonly #waiting = new FairQueue<Waiting>();
  #inTurn = 0;
  #underWay = 0;

  constructor(bounds: TurnBounds) {
    this.#bounds = bounds;
  }

  /**
   * Reads something when it is the reader's turn, which is at once where the present turn has room.
   *
   * @returns null when the reader has gone before
   * @throws what `make` throws
   */
  take<Page>(reader: PageReader, make: () => Promise<Page>): Promise<Page | null> {
    if (reader.isDisconnected) return Promise.resolve(null);
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
    return this.#inTurn < this.#bounds.aTurn && this.#underWay < this.#bounds.atOnce;
  }

  async #begin<Page>(make: () => Promise<Page>): Promise<Page> {
    this.#inTurn += 1;
    this.#underWay += 1;
    const isFirst = this.#inTurn === 1;
    try {
      const made = make();
      // Behind the reads of this turn, which the store does in one as well: with those of the next they would be one.
      if (isFirst) setImmediate(() => this.#endTurn());
      return await made;
    } finally {
      this.#underWay -= 1;
      this.#beginNext();
    }
  }

  /** Behind what has come on all sockets meanwhile: they are looked at first. */
  #endTurn(): void {
    this.#inTurn = 0;
    this.#beginNext();
  }

  #beginNext(): void {
    while (this.#isFree) {
      const next = this.#waiting.takeOne();
      if (next === undefined) return;
      if (next.reader.isDisconnected) next.giveUp();
      else next.begin();
    }
  }
}
