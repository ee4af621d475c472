// Updates the summaries of end users in a ledger file. Skips postings that a summary already includes, so that a busy
// end user costs little.

import type { EndUserKey } from '../../../ledger/command.ts';
import { endUserText } from '../../../ledger/command.ts';
import type { Instant } from '../../../ledger/instant.ts';
import { sizeOf } from '../../../ledger/state.ts';
import { SUMMARIZED_MAX, type SummaryKeeper, summaryOf } from '../../end-user-summaries.ts';
import { prepare, type Row, type Statement } from '../file/statements.ts';
import { UuidParameter, uuidOfHex } from '../file/uuid.ts';
import { FeedPosition } from '../journal/feed.ts';
import { END_USERS, type NewSummary, type SummaryPart } from '../journal/summaries.ts';
import { CYCLES_PER_TURN_MAX, type SqliteLedgerStore } from './ledger-store.ts';

/**
 * The maximum number of postings that one step reads. A step takes 1 to 2 ms if the summaries already include these
 * postings.
 */
const SCANNED_MAX = 512;

export class SqliteSummaryKeeper implements SummaryKeeper {
  readonly #ledger: SqliteLedgerStore;
  readonly #position: FeedPosition;
  readonly #next: Statement;
  readonly #counted: Statement;
  readonly #expired: Statement;
  readonly #createdAt: Statement;
  readonly #endUser = new UuidParameter();

  constructor(ledger: SqliteLedgerStore) {
    const { db } = ledger;
    this.#ledger = ledger;
    this.#position = new FeedPosition(db, END_USERS);
    this.#next = prepare(
      db,
      'SELECT posting, created_at, account, hex(end_user) FROM postings WHERE posting > ? ORDER BY posting LIMIT ?',
    );
    this.#counted = prepare(
      db,
      'SELECT latest_posting FROM end_user_summaries WHERE account = ? AND end_user = ? AND latest_posting >= ?',
    );
    this.#expired = prepare(
      db,
      `SELECT latest_posting, latest_activity, account, hex(end_user) FROM end_user_summaries
       WHERE expires_at <= ? ORDER BY expires_at LIMIT ?`,
    );
    this.#createdAt = prepare(db, 'SELECT created_at FROM postings WHERE posting = ?');
  }

  async catchUp(): Promise<boolean> {
    const { isMore, ...part } = this.#ledger.attempt(() => this.#nextPart());
    if (part.summaries.length === 0 && part.through === part.after) return false;
    const isSaved = await this.#ledger.saveSummaries(part);
    return isMore || !isSaved;
  }

  #nextPart(): SummaryPart & { readonly isMore: boolean } {
    const after = this.#position.read();
    const read = new SomeEndUsers((user, activity) => this.#summarize(user, activity));
    let through = after;
    let scanned = 0;
    let isMore = false;
    // A step often summarizes `SUMMARIZED_MAX` end users before it has scanned all rows, so read one row at a time.
    for (const row of this.#next.iterate(after, SCANNED_MAX)) {
      const { user, activity } = endUserOf(row);
      isMore = ++scanned === SCANNED_MAX;
      if (!this.#isCounted(user, activity.posting) && !read.add(user, activity)) {
        isMore = true;
        break;
      }
      through = activity.posting;
    }
    const ended = this.#expired.all(this.#ledger.clock.peek(), SUMMARIZED_MAX).map(endUserOf);
    const isAll = ended.every(({ user, activity }) => read.add(user, activity));
    isMore ||= !isAll || ended.length === SUMMARIZED_MAX;
    return { after, through, summaries: read.summaries, isMore };
  }

  #isCounted({ account, endUser }: EndUserKey, posting: number): boolean {
    return this.#counted.get(account, this.#endUser.of(endUser), posting) !== undefined;
  }

  #summarize(user: EndUserKey, { posting, at }: Activity): { summary: NewSummary; cycles: number } {
    const { state, now, latestPosting } = this.#ledger.read(user, posting);
    const latest = Math.max(latestPosting ?? 0, posting);
    const latestActivity = latest === posting ? at : Number(this.#createdAt.get(latest)?.[0]);
    return {
      summary: { ...user, ...summaryOf(state, now), latestActivity, latestPosting: latest },
      cycles: sizeOf(state),
    };
  }
}

/** A posting of an end user, and the instant at which it was created. */
interface Activity {
  readonly posting: number;
  readonly at: Instant;
}

function endUserOf(row: Row): { readonly user: EndUserKey; readonly activity: Activity } {
  const [posting, at, account, digits] = row as [number, number, number, string];
  return { user: { account, endUser: uuidOfHex(digits) }, activity: { posting, at } };
}

type Summarize = (user: EndUserKey, activity: Activity) => { summary: NewSummary; cycles: number };

/** The end users of one step, each with its latest summary. */
class SomeEndUsers {
  readonly #summarize: Summarize;
  readonly #summaries = new Map<string, NewSummary>();
  #cycles = 0;

  constructor(summarize: Summarize) {
    this.#summarize = summarize;
  }

  get summaries(): readonly NewSummary[] {
    return [...this.#summaries.values()];
  }

  /**
   * @param activity a posting that the summary must include
   * @returns false if the step has no room
   */
  add(user: EndUserKey, activity: Activity): boolean {
    const name = endUserText(user);
    const known = this.#summaries.get(name);
    if (known !== undefined && known.latestPosting >= activity.posting) return true;
    const isFull = this.#summaries.size >= SUMMARIZED_MAX || this.#cycles >= CYCLES_PER_TURN_MAX;
    if (known === undefined && isFull) return false;
    const { summary, cycles } = this.#summarize(user, activity);
    this.#summaries.set(name, summary);
    this.#cycles += cycles;
    return true;
  }
}
