// Assigns connections to batches. After a batch has sent its COMMIT, the next batch of its lane can use the same
// connection, which saves a round trip. The next batch sees the writes of the previous batch.

import { StoreFault } from '../../store-fault.ts';
import type { Connection } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';

interface Session {
  /** Null for a batch that does not share its connection. */
  readonly lane: number | null;
  readonly connection: Connection;
  /** The number of batches that use the connection: two if a batch starts before the previous batch has ended. */
  users: number;
  isSound: boolean;
}

export class LaneSessions {
  readonly #pool: Pick<ConnectionPool, 'connect'>;
  /** The session that the next batch of each lane can use. */
  readonly #open = new Map<Session['lane'], Session>();

  constructor(pool: Pick<ConnectionPool, 'connect'>) {
    this.#pool = pool;
  }

  /**
   * Runs a batch on the open connection of its lane, or on a connection from the pool. If a batch fails after the next
   * one has started on the same connection, the next one usually fails too. After a failure, no further batch can use
   * the connection. It is closed when its batches have ended, which rolls back an open transaction. A `StoreFault` does
   * not close the connection, because it is thrown before any statement of the batch is sent.
   *
   * @param work runs the batch, and calls `open` when the COMMIT of the batch has been sent
   */
  async run<Result>(
    lane: Session['lane'],
    work: (connection: Connection, open: () => void) => Promise<Result>,
  ): Promise<Result> {
    const open = this.#open.get(lane);
    this.#open.delete(lane);
    const session = open ?? { lane, connection: await this.connect(), users: 0, isSound: true };
    session.users += 1;
    try {
      return await work(session.connection, () => this.#offer(session));
    } catch (error) {
      session.isSound &&= error instanceof StoreFault;
      if (this.#open.get(lane) === session) this.#open.delete(lane);
      throw error;
    } finally {
      session.users -= 1;
      if (session.users === 0) this.#leave(session);
    }
  }

  /** If the server cannot be reached, the batch fails without a retry, and the next batch tries to connect again. */
  async connect(): Promise<Connection> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw new StoreFault('StoreUnavailable', (error as Error).message);
    }
  }

  #offer(session: Session): void {
    const { lane, isSound } = session;
    if (lane !== null && isSound && !this.#open.has(lane)) this.#open.set(lane, session);
  }

  /**
   * Called when a batch has ended. Until the end of this turn of the event loop, the next batch of the lane can take
   * over the connection. If none does, the connection then returns to the pool. A batch that waits for a connection
   * from the pool therefore begins only after the requests of the ended batch have been answered.
   */
  #leave(session: Session): void {
    this.#offer(session);
    const { lane, connection, isSound } = session;
    if (this.#open.get(lane) !== session) connection.release(isSound);
    else
      setImmediate(() => {
        if (this.#open.get(lane) !== session || session.users > 0) return;
        this.#open.delete(lane);
        connection.release(true);
      });
  }
}
