// The journal of a ledger file, and the holdings that follow it. Postings are entered at once, one behind the other, which
// dirties next to no pages; the holdings of an end user are brought up to them later, together with those of its
// neighbours. What is entered and not yet in the holdings is redone when they are read.
//
//   entered, durable, answered ──▶ waiting ──▶ posted: the holdings say so themselves

import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import { type Cycle, inBurnOrder } from '../../ledger/cycle.ts';
import { extend } from '../../ledger/hash-chain.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { Posting } from '../../ledger/posting.ts';
import { type Holdings, HoldingsReader, isCounted, PostingsReader } from './rows.ts';

export interface Redone {
  /** As the file has them. */
  readonly stored: Holdings;
  /** As they are: the cycles of `stored`, each in its place, then what was added. */
  readonly current: Holdings;
}

/** Reads the holdings of end users as they are, be they posted or not. */
export class JournalReader {
  readonly #stored: HoldingsReader;
  readonly #chain: PostingsReader;

  constructor(db: DatabaseSync) {
    this.#stored = new HoldingsReader(db);
    this.#chain = new PostingsReader(db);
  }

  /**
   * @param head the latest posting of the end user that may not be in its holdings, if there is one
   * @returns the cycles that have not ended at `now`, and the one that renews, in burn order
   */
  read(user: EndUserKey, head: number | undefined, now: Instant): Holdings {
    if (head === undefined) return this.#stored.read(user, now);
    const { current } = this.redo(user, head, now);
    const cycles = inBurnOrder(current.cycles.filter((cycle) => isCounted(cycle, now)));
    return { ...current, cycles };
  }

  /** The same, with cycles that have ended among them, where something was entered before they did. */
  redo(user: EndUserKey, head: number, now: Instant): Redone {
    const first = this.#stored.read(user, now);
    const entered = this.#enteredAfter(first, user, head);
    const earliestEnd = entered.reduce(
      (end, { posting }) => Math.min(end, posting.expiresAt),
      Number.POSITIVE_INFINITY,
    );
    const stored = earliestEnd > now ? first : this.#stored.read(user, earliestEnd - 1);
    // Read a second time, it may have been posted in between.
    const missing = entered.filter(({ number }) => number > (stored.latestPosting ?? 0));
    const cycles = missing.reduceRight((so, { posting }) => redone(so, posting), stored.cycles);
    const latestPosting = missing[0]?.number ?? stored.latestPosting;
    const postingCount = stored.postingCount + missing.length;
    const postings = missing.map(({ posting }) => posting).reverse();
    const chain = stored.chain === null ? null : extend(stored.chain, postings);
    return { stored, current: { cycles, latestPosting, postingCount, chain } };
  }

  #enteredAfter({ latestPosting }: Holdings, user: EndUserKey, head: number): { number: number; posting: Posting }[] {
    const entered: { number: number; posting: Posting }[] = [];
    for (const each of this.#chain.from(head, user)) {
      if (latestPosting !== null && each.number <= latestPosting) return entered;
      entered.push(each);
    }
    assert(latestPosting === null, 'the chain of an end user comes by the posting that its holdings count last');
    return entered;
  }
}

/** What a posting does to the cycles: of additions and subtractions only, since all else is posted as it is entered. */
function redone(cycles: readonly Cycle[], posting: Posting): readonly Cycle[] {
  const { cycleId, period, kind, amount, createdAt, expiresAt } = posting;
  if (kind === 'add') {
    const validityDays = Math.ceil((expiresAt - createdAt) / DAY_MS);
    const state = { type: 'one-time', status: 'active', period, validityDays } as const;
    return [...cycles, { id: cycleId, ...state, amount, remaining: amount, start: createdAt, end: expiresAt }];
  }
  assert(kind === 'subtract', 'what starts, stops or renews a cycle is posted at once');
  const index = cycles.findIndex((cycle) => cycle.id === cycleId && cycle.period === period);
  const cycle = cycles[index];
  assert(cycle !== undefined, 'credits are spent from a cycle that is there');
  const after = cycles.slice();
  after[index] = { ...cycle, remaining: cycle.remaining + amount };
  return after;
}
