// The connections that batches are written on. Once a batch has sent its COMMIT, the next one of its lane may send its
// own statements behind that on the same connection: the server then goes from one to the next without a word from here,
// and what the next one loads is what the one before has left. A lane that has nothing to follow gives its connection back.

import type { Pool, PoolClient } from 'pg';
import { StoreFault } from '../store.ts';

export class Session {
  readonly client: PoolClient;
  /** Batches on it: one, two when one has followed the other, or none for the rest of a turn of the event loop. */
  users = 1;
  isSound = true;
  /** In which it is open to the next batch; null when it is not. */
  lane: number | null = null;

  constructor(client: PoolClient) {
    this.client = client;
  }
}

export class LaneSessions {
  readonly #pool: Pool;
  /** Of each lane, the one on which a COMMIT has been sent, and nothing behind it. */
  readonly #open = new Map<number, Session>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The one on which a batch of the lane may follow, at once; null when it needs another. */
  takeOpen(lane: number): Session | null {
    const open = this.#open.get(lane);
    if (open === undefined) return null;
    this.#open.delete(lane);
    open.lane = null;
    open.users += 1;
    return open;
  }

  async take(): Promise<Session> {
    return new Session(await this.connect());
  }

  /** A server that cannot be reached is down: whoever waits is told at once, and the next batch tries again. */
  async connect(): Promise<PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw new StoreFault('StoreUnavailable', (error as Error).message);
    }
  }

  /** Lets the next batch of the lane follow on this connection. */
  offer(lane: number, session: Session): void {
    if (!session.isSound || this.#open.has(lane)) return;
    session.lane = lane;
    this.#open.set(lane, session);
  }

  /**
   * After any error a connection is not trusted any more; closing it rolls back, and a batch that followed fails as well.
   *
   * @param lane in which the next batch may take it over: that one is sent off in the same turn of the event loop, before
   * the answers of this one, and the pool would give it a connection only behind them
   */
  leave(session: Session, isSound: boolean, lane: number | null): void {
    session.users -= 1;
    session.isSound &&= isSound;
    if (!session.isSound) this.#close(session);
    if (session.users > 0) return;
    if (session.lane === null && lane !== null) this.offer(lane, session);
    if (session.lane === null) session.client.release(!session.isSound);
    else setImmediate(() => this.#releaseUnused(session));
  }

  #releaseUnused(session: Session): void {
    if (session.users > 0 || session.lane === null) return;
    this.#close(session);
    session.client.release();
  }

  /** To batches that would follow. */
  #close(session: Session): void {
    if (session.lane === null) return;
    this.#open.delete(session.lane);
    session.lane = null;
  }
}
