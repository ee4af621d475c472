// When the writer's thread enters the renewals that are due: a slice in each turn of its event loop, so that between two
// slices whoever writes has its turn. The slices share a transaction until somebody's batch commits it with its own, or
// until there are so many that they are committed alone.
//
//   asked ──▶ slice ──▶ slice ──▶ … ──▶ all that was asked for, or nothing left ──▶ committed ──▶ told
//                    └── a batch comes in: committed with it ──▶ slice ──▶ …

import type { EndUserKey } from '../../ledger/command.ts';
import type { StoreFault } from '../store.ts';
import type { RenewalSlice } from './due-renewals.ts';
import { faultOf } from './sqlite-error.ts';

/** Renewals that are asked for and told of in one, and committed in one where nobody else writes: 10 ms of work or so. */
const END_USERS_MAX = 512;
const PERIODS_MAX = 1_024;

/** The writer, as far as renewals go. */
export interface RenewingWriter {
  renew(): RenewalSlice;
  saveRenewals(): readonly EndUserKey[];
  takeRenewed(): number;
}

/** What came of it. */
export interface Renewed {
  /** Whose renewals are entered and on stable storage. */
  readonly endUsers: number;
  /** Whether more may be due. */
  readonly isMore: boolean;
  /** Those that were posted and of whom no batch has told. */
  readonly posted: readonly EndUserKey[];
}

export type Turn = (work: () => void) => void;

export class RenewalTurns {
  readonly #writer: RenewingWriter;
  readonly #tell: (renewed: Renewed | StoreFault) => void;
  readonly #nextTurn: Turn;
  /** How often it was asked, and has not told. */
  #asked = 0;
  #endUsers = 0;
  #periods = 0;

  /** @param nextTurn has the work done when all that has come in meanwhile is done */
  constructor(writer: RenewingWriter, tell: (renewed: Renewed | StoreFault) => void, nextTurn: Turn = setImmediate) {
    this.#writer = writer;
    this.#tell = tell;
    this.#nextTurn = nextTurn;
  }

  /** Asks for some renewals to be entered; `tell` is called once for each time. */
  ask(): void {
    this.#asked += 1;
    if (this.#asked === 1) this.#nextTurn(() => this.#step());
  }

  /** What was asked for and not told of is left to the next start. */
  stop(): void {
    this.#asked = 0;
  }

  #step(): void {
    if (this.#asked === 0) return;
    const told = this.#attempt();
    if (told !== null) {
      this.#asked -= 1;
      this.#endUsers = 0;
      this.#periods = 0;
      this.#tell(told);
    }
    if (this.#asked > 0) this.#nextTurn(() => this.#step());
  }

  /** Null while there is more to do. */
  #attempt(): Renewed | StoreFault | null {
    try {
      const { endUsers, periods } = this.#writer.renew();
      this.#endUsers += endUsers;
      this.#periods += periods;
      const isMore = periods > 0;
      if (isMore && this.#endUsers < END_USERS_MAX && this.#periods < PERIODS_MAX) return null;
      const posted = this.#writer.saveRenewals();
      return { endUsers: this.#writer.takeRenewed(), isMore, posted };
    } catch (error) {
      return faultOf(error);
    }
  }
}
