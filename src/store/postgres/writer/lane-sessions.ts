// The connections that batches are written on. Once a batch has sent its COMMIT, the next one of its lane may send its own
// statements behind that on the same connection: the server then goes from one to the next without waiting, and the next
// one loads what the one before has left. A connection that no batch follows on goes back to the pool.

import { StoreFault } from '../../store-fault.ts';
import type { Connection } from '../pool/connection.ts';
import type { ConnectionPool } from '../pool/connection-pool.ts';

interface Session {
  /** Null for a batch that follows no other, and is followed by none. */
  readonly lane: number | null;
  readonly connection: Connection;
  /** Batches on it: one, or two when one follows the other. */
  users: number;
  isSound: boolean;
}

export class LaneSessions {
  readonly #pool: Pick<ConnectionPool, 'connect'>;
  /** By lane, the one on which the next batch may follow. */
  readonly #open = new Map<Session['lane'], Session>();

  constructor(pool: Pick<ConnectionPool, 'connect'>) {
    this.#pool = pool;
  }

  /**
   * Runs a batch on a connection: on the one that is open in its lane, at once, or on another. After an error a connection
   * is closed, which rolls back; a batch that follows on it fails as well. A fault is thrown before anything is sent.
   *
   * @param work calls `open` once its COMMIT is sent
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

  /** A server that cannot be reached is down: the batch fails at once, and the next one tries again. */
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
   * The next batch of the lane is sent in the same turn of the event loop, before the responses of this one. Through the
   * pool it would get a connection only behind them.
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
