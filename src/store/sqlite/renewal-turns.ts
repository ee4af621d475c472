// When the writer's thread enters the renewals that are due: a slice in each turn of its event loop, so that between two
// slices whoever writes comes in. The slices share a transaction, which somebody's batch commits with its own: no COMMIT is
// for a few renewals alone. While there are renewals, a batch waits for as many as make the COMMIT worth it, and batches
// that wait together are written together.
//
//   asked ──▶ slice ──▶ slice ──▶ … ──▶ as many as are asked for, or nothing left ──▶ committed ──▶ told
//                    └── batches wait, and there are enough renewals: written and committed with them ──▶ slice ──▶ …

import type { EndUserKey } from '../../ledger/command.ts';
import { StoreFault } from '../store.ts';
import type { RenewalSlice } from './due-renewals.ts';
import { faultOf } from './sqlite-error.ts';

/** End users that are asked for and told of in one, and committed in one where nobody else writes: 10 ms of work or so. */
export const RENEWED_MAX = 512;

/** The same for periods, of which an end user may have missed many. */
const PERIODS_MAX = 1_024;

/** For so many periods a batch waits, behind the COMMIT before: a millisecond or two. */
export const PERIODS_BESIDE_BATCH = 64;

/** The writer, as far as renewals go. */
export interface RenewingWriter {
  renew(): RenewalSlice;
  saveRenewals(): readonly EndUserKey[];
  takeRenewed(): number;
}

/** What came of it. */
export interface Renewed {
  /** Of how many end users all that was due is entered and on stable storage. */
  readonly endUsers: number;
  /** Whether more may be due. */
  readonly isMore: boolean;
  /** Those that were posted and of whom no batch has told. */
  readonly posted: readonly EndUserKey[];
}

export type Turn = (work: () => void) => void;

export interface TurnOptions<Batch> {
  /** Writes these batches, commits them with the renewals, and answers them. */
  readonly write: (batches: readonly Batch[]) => void;
  readonly tell: (renewed: Renewed | StoreFault) => void;
  /** Has the work done behind all that has come in meanwhile. */
  readonly nextTurn?: Turn;
}

export class RenewalTurns<Batch> {
  readonly #writer: RenewingWriter;
  readonly #options: TurnOptions<Batch>;
  readonly #nextTurn: Turn;
  /** How often it was asked, and has not told. */
  #asked = 0;
  /** What was entered for the one who asked first. */
  #entered = { endUsers: 0, periods: 0 };
  /** Periods since the last COMMIT. */
  #uncommitted = 0;
  readonly #held: Batch[] = [];

  constructor(writer: RenewingWriter, options: TurnOptions<Batch>) {
    this.#writer = writer;
    this.#options = options;
    this.#nextTurn = options.nextTurn ?? setImmediate;
  }

  /** Asks for some renewals to be entered; `tell` is called once for each time. */
  ask(): void {
    this.#asked += 1;
    if (this.#asked === 1) this.#nextTurn(() => this.#step());
  }

  /** Writes a batch: at once, or when there are renewals enough to go with it. */
  write(batch: Batch): void {
    this.#held.push(batch);
    if (this.#asked === 0 || this.#uncommitted >= PERIODS_BESIDE_BATCH) this.flush();
  }

  /** Writes those that wait. */
  flush(): void {
    if (this.#held.length === 0) return;
    this.#uncommitted = 0;
    this.#options.write(this.#held.splice(0));
  }

  /** Writes those that wait, and begins nothing more. */
  stop(): void {
    this.#asked = 0;
    this.flush();
  }

  #step(): void {
    if (this.#asked === 0) return;
    const told = this.#attempt();
    if (told !== null) {
      this.#asked -= 1;
      this.#entered = { endUsers: 0, periods: 0 };
      this.#options.tell(told);
    }
    if (this.#asked > 0) this.#nextTurn(() => this.#step());
  }

  /** Null while there is more to do. */
  #attempt(): Renewed | StoreFault | null {
    const slice = this.#slice();
    const isOver = slice instanceof StoreFault || slice.periods === 0;
    const { endUsers, periods } = this.#entered;
    const isDone = isOver || endUsers >= RENEWED_MAX || periods >= PERIODS_MAX;
    if (isDone || this.#uncommitted >= PERIODS_BESIDE_BATCH) this.flush();
    if (slice instanceof StoreFault) return slice;
    if (!isDone) return null;
    try {
      this.#uncommitted = 0;
      const posted = this.#writer.saveRenewals();
      return { endUsers: this.#writer.takeRenewed(), isMore: !isOver, posted };
    } catch (error) {
      return faultOf(error);
    }
  }

  #slice(): RenewalSlice | StoreFault {
    try {
      const slice = this.#writer.renew();
      this.#entered.endUsers += slice.endUsers;
      this.#entered.periods += slice.periods;
      this.#uncommitted += slice.periods;
      return slice;
    } catch (error) {
      this.#uncommitted = 0;
      return faultOf(error);
    }
  }
}
