// While a synchronous standby is away, a COMMIT waits for it in the server, whether its client has given up or not. Each
// would leave a connection behind. So once a COMMIT of this process got no answer, no further one is sent until none is
// seen to wait: the standby confirms in the order of the log, so that a new one would wait behind those.

import type { ClientBase, Pool, QueryConfig } from 'pg';
import { isConnectionLost } from './postgres-error.ts';

/** Longer than a COMMIT waits while the standby is there, and shorter than this process waits for one. */
const WAIT_MS = 2_000;

/** Asking takes no lock. */
const ASK_MS = 2_000;

const WAITING = `
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND wait_event = 'SyncRep'
    AND state_change < clock_timestamp() - interval '${WAIT_MS} milliseconds' LIMIT 1`;

export class StandbyWatch {
  #isSuspected = false;
  readonly #onSuspicion: () => void;

  /** @param onSuspicion has the server looked at now rather than at the next tick, by when it may be over and nobody told */
  constructor(onSuspicion: () => void) {
    this.#onSuspicion = onSuspicion;
  }

  /** A connection was lost, and a COMMIT may have been left behind. */
  suspect(): void {
    this.#isSuspected = true;
    this.#onSuspicion();
  }

  get isSuspected(): boolean {
    return this.#isSuspected;
  }

  /** Asks only when there is a suspicion, which ends when the server says so. */
  async isAway(server: Pool | ClientBase): Promise<boolean> {
    if (!this.#isSuspected) return false;
    this.#isSuspected = await this.#ask(server);
    return this.#isSuspected;
  }

  async #ask(server: Pool | ClientBase): Promise<boolean> {
    try {
      const { rows } = await server.query({ text: WAITING, query_timeout: ASK_MS } as QueryConfig);
      return rows.length > 0;
    } catch (error) {
      if (isConnectionLost(error)) throw error;
      // Something that speaks as PostgreSQL does, and keeps no such list, must not be taken to be away for ever.
      return false;
    }
  }
}
