// The connections that batches are written on. Once a batch has sent its COMMIT, the next one of its lane may send its
// own statements behind that on the same connection: the server then goes from one to the next without a word from here,
// and what the next one loads is what the one before has left.

import type { Pool, PoolClient } from 'pg';
import { StoreFault } from '../store.ts';

export class Session {
  readonly client: PoolClient;
  /** Batches on it: one, or two when one has followed the other. */
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
  /** Of each lane, the one on which a COMMIT has been sent and nothing behind it. */
  readonly #open = new Map<number, Session>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** @param lane null for a connection of one's own */
  async take(lane: number | null): Promise<Session> {
    const open = lane === null ? undefined : this.#open.get(lane);
    if (lane === null || open === undefined) return new Session(await this.connect());
    this.#open.delete(lane);
    open.lane = null;
    open.users += 1;
    return open;
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

  /** After any error a connection is not trusted any more; closing it rolls back, and a batch that followed fails as well. */
  leave(session: Session, isSound: boolean): void {
    session.users -= 1;
    session.isSound &&= isSound;
    const isLast = session.users === 0;
    if (session.lane !== null && (isLast || !session.isSound)) {
      this.#open.delete(session.lane);
      session.lane = null;
    }
    if (isLast) session.client.release(!session.isSound);
  }
}
