// Connections take turns. Node hands over all that has arrived on a connection before it looks at the next, two megabytes
// at a time, which is 9,000 pipelined requests, and everybody else waits meanwhile. So once a connection brings many in
// one turn of the event loop, it and all others of its account are held: they are read from again a few each turn,
// accounts in turn, and those that bring many only while their account may have more in flight.

import type { Socket } from 'node:net';
import { FairLine } from '../commit/fair-line.ts';
import type { WorkInFlight } from './work-in-flight.ts';

/** From so many in one turn on a connection is held. What had come with them, 64 KiB at the most, is still worked on. */
export const REQUESTS_A_TURN_MAX = 64;

/** For connections whose account is not known yet. */
const NOBODY = 0;

const STATE = Symbol('turns');

interface State {
  /** The latest in which it brought anything. */
  turn: number;
  /** In that turn. Of one that brought nothing yet, the most is feared. */
  requests: number;
  account: number;
  isHeld: boolean;
}

type TurnedSocket = Socket & { [STATE]?: State };

export class ConnectionTurns {
  readonly #work: WorkInFlight;
  readonly #byAccount = new Map<number, Set<TurnedSocket>>();
  readonly #held = new FairLine<TurnedSocket>();
  #turn = 0;
  #isScheduled = false;

  constructor(work: WorkInFlight) {
    this.#work = work;
    work.onRoom = () => {
      if (this.#held.length > 0) this.#schedule();
    };
  }

  /** To be called for each new connection. */
  arrive(socket: TurnedSocket): void {
    const state = { turn: -1, requests: REQUESTS_A_TURN_MAX, account: NOBODY, isHeld: false };
    socket[STATE] = state;
    this.#put(socket, NOBODY);
    socket.once('close', () => this.#drop(socket, state.account));
  }

  /** To be called for each request that arrives. */
  count(socket: TurnedSocket): void {
    const state = socket[STATE];
    if (state === undefined) return;
    this.#schedule();
    if (state.turn !== this.#turn) {
      state.turn = this.#turn;
      state.requests = 0;
    }
    state.requests += 1;
    if (state.requests !== REQUESTS_A_TURN_MAX) return;
    // Those of nobody as well: they may be of the same account.
    for (const account of new Set([state.account, NOBODY]))
      for (const other of this.#byAccount.get(account) ?? []) this.#hold(other);
  }

  /** Whose requests come on the connection, once it is known. */
  belongsTo(socket: TurnedSocket, account: number): void {
    const state = socket[STATE];
    if (state === undefined || state.account === account || socket.destroyed) return;
    this.#drop(socket, state.account);
    state.account = account;
    this.#put(socket, account);
  }

  #put(socket: TurnedSocket, account: number): void {
    const sockets = this.#byAccount.get(account);
    if (sockets) sockets.add(socket);
    else this.#byAccount.set(account, new Set([socket]));
  }

  #drop(socket: TurnedSocket, account: number): void {
    const sockets = this.#byAccount.get(account);
    sockets?.delete(socket);
    if (sockets?.size === 0) this.#byAccount.delete(account);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#turn += 1;
      if (this.#held.length > 0) this.#letSomeGoOn();
    });
  }

  #hold(socket: TurnedSocket): void {
    const state = socket[STATE] as State;
    if (state.isHeld) return;
    state.isHeld = true;
    this.#held.push(state.account, socket);
    // Node goes on reading whenever somebody asks for a body, of a request that had come as well.
    socket.on('resume', pauseAgain);
    socket.pause();
  }

  /** As many as bring a turn's worth, if each brings what it did before. */
  #letSomeGoOn(): void {
    let feared = 0;
    let waiting = 0;
    for (let tries = this.#held.length; tries > 0 && feared < REQUESTS_A_TURN_MAX; tries--) {
      const [socket] = this.#held.take(1) as [TurnedSocket];
      const state = socket[STATE] as State;
      const bringsMany = state.requests >= REQUESTS_A_TURN_MAX;
      if (bringsMany && !socket.destroyed && !this.#work.hasRoom(state.account)) {
        this.#held.push(state.account, socket);
        waiting += 1;
        continue;
      }
      feared += state.requests;
      state.isHeld = false;
      socket.off('resume', pauseAgain);
      socket.resume();
    }
    if (this.#held.length > waiting) this.#schedule();
  }
}

function pauseAgain(this: Socket): void {
  this.pause();
}
