// Connections take turns. Node hands over all that has arrived on a connection before it looks at the next, two megabytes
// at a time, which is 9,000 pipelined requests, and everybody else waits meanwhile. So once a connection brings many in
// one turn of the event loop, it and all others of its account are held: they are read from again a few each turn,
// accounts in turn, and those that bring many only while their account may have more in flight.
//
// While accounts share the server, each has a few places only, so that batches stay short, and what one brings beyond
// its places waits here, before anybody looks into it:
//
//   arrives ──▶ handled, in a place
//      └── none is free: waits, its connection held ──▶ handled, when one of the account is

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from '../batching/fair-queue.ts';
import { type Connection, REQUESTS_A_TURN_MAX } from './connection.ts';
import { readInPieces } from './reading-in-pieces.ts';
import { SharedPlaces } from './shared-places.ts';
import { Strangers } from './strangers.ts';
import type { WorkInFlight } from './work-in-flight.ts';

/** Requests that wait, from which on the rest of one is not read, and of connections of whom nothing is known only some. */
const WAITING_MAX = 1_000;
/** So that a health check on a new connection is answered, and hundreds of connections bring no more than can be done. */
const STRANGERS_EVERY_MS = 10;

/**
 * Requests in a turn, from which on all connections are held. libuv is told of 1,024 connections at once that have
 * something to read, and while there are as many it asks again, 47 times over, before anything else happens
 * (https://github.com/libuv/libuv/issues/282): with 7,000 connections that asked, a turn lasted for 1.6 s.
 */
const TURN_MAX = 1_024;

/**
 * Requests that are read in a turn from connections that were held, some 15 ms of work. With 256 of them in each turn the
 * longest wait of 7,000 connections was 1.4 s rather than 0.9, and a new connection waited for 50 ms rather than 65.
 */
const HELD_TURN_MAX = 512;

/** Requests that are read in a turn from connections that were held, while accounts share the server: one piece of one. */
const SHARED_TURN_MAX = 16;

/** An account that is alone brings hundreds in a turn, and nothing is learned from each. */
const ASK_EVERY_MS = 1;

/** For connections whose account is not known yet. */
const NOBODY = 0;

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

interface Arrived {
  readonly connection: Connection;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Waiting extends Arrived {
  readonly account: number;
  /** Whether others were let by since it had not arrived to its end. */
  wasPassedOver: boolean;
}

type ParsedSocket = Socket & { parser?: { incoming: IncomingMessage | null } | null };

export class ConnectionTurns {
  readonly #work: WorkInFlight;
  readonly #handle: RequestHandler;
  readonly #byAccount = new Map<number, Set<Connection>>();
  readonly #held = new FairQueue<Connection>();
  readonly #strangers = new Strangers();
  #strangersTimer: NodeJS.Timeout | null = null;
  readonly #waiting = new FairQueue<Waiting>();
  #turn = 0;
  #broughtInTurn = 0;
  #isScheduled = false;
  readonly #places = new SharedPlaces();
  /** Whose request was told of last to those who give out places. */
  #asked = NOBODY;
  #askedAtMs = Number.NEGATIVE_INFINITY;

  /** @param handle what is done with a request that has waited */
  constructor(work: WorkInFlight, handle: RequestHandler) {
    this.#work = work;
    this.#handle = handle;
    work.onRoom = () => {
      if (this.#isAnyHeld || this.#waiting.length > 0) this.#schedule();
    };
  }

  /** Whether nobody has to wait or to be refused. */
  get isCalm(): boolean {
    return !this.#places.isShared && this.#waiting.length === 0 && this.#work.isCalm;
  }

  /** To be called for each new connection. */
  arrive(connection: Connection): void {
    this.#put(connection, NOBODY);
    connection.socket.once('close', () => this.#drop(connection));
    // While some bring many, those who come may be more of them.
    if (!this.#isAnyHeld) return;
    this.#hold(connection);
    this.#schedule();
  }

  /** To be called for each request that arrives, also where it is answered at once. */
  count(connection: Connection): void {
    this.#schedule();
    if (connection.turn !== this.#turn) {
      connection.turn = this.#turn;
      connection.brought = 0;
    }
    connection.brought += 1;
    this.#broughtInTurn += 1;
    if (this.#broughtInTurn === TURN_MAX) this.#holdAll();
    if (connection.brought !== REQUESTS_A_TURN_MAX) return;
    // Those of nobody as well: they may be of the same account.
    for (const account of new Set([connection.account, NOBODY]))
      for (const other of this.#byAccount.get(account) ?? []) this.#hold(other);
  }

  /** Whose request came on the connection, once it is known. */
  belongsTo(connection: Connection, account: number, nowMs: number): void {
    if (account !== this.#asked || nowMs - this.#askedAtMs >= ASK_EVERY_MS) {
      this.#asked = account;
      this.#askedAtMs = nowMs;
      this.#places.ask(account, 1 + this.#work.busyWith(account) + this.#waiting.lengthOf(account), nowMs);
    }
    this.recognise(connection, account);
  }

  /** Whose the connection seems to be: who is refused all the same is no stranger. */
  recognise(connection: Connection, account: number): void {
    if (connection.account === account || !this.#byAccount.get(connection.account)?.has(connection)) return;
    this.#drop(connection);
    this.#put(connection, account);
  }

  /** Whether the account may have one more request, in a place or waiting for one. */
  hasRoom(account: number): boolean {
    // What waits takes up room as well.
    return this.#work.hasRoom(account, 1 + this.#waiting.lengthOf(account) + this.#waiting.length);
  }

  /** Whether a request waits: behind others of its connection or its account, or for a place. */
  mustWait({ waiting }: Connection, account: number | null): boolean {
    if (waiting > 0) return true;
    return account !== null && (this.#waiting.lengthOf(account) > 0 || !this.#hasPlace(account));
  }

  wait(account: number | null, arrived: Arrived): void {
    const { connection } = arrived;
    connection.waiting += 1;
    const waiting = { ...arrived, account: account ?? connection.account, wasPassedOver: false };
    this.#waiting.push(waiting.account, waiting);
    this.#hold(connection);
    this.#schedule();
  }

  get #isAnyHeld(): boolean {
    return this.#held.length + this.#strangers.length > 0;
  }

  #hasPlace(account: number): boolean {
    return !this.#places.isShared || this.#work.busyWith(account) < this.#places.of(account);
  }

  #put(connection: Connection, account: number): void {
    connection.account = account;
    const connections = this.#byAccount.get(account);
    if (connections) connections.add(connection);
    else this.#byAccount.set(account, new Set([connection]));
  }

  #drop(connection: Connection): void {
    const connections = this.#byAccount.get(connection.account);
    connections?.delete(connection);
    if (connections?.size === 0) this.#byAccount.delete(connection.account);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#turn += 1;
      this.#broughtInTurn = 0;
      if (this.#waiting.length > 0) this.#handleSome();
      if (this.#isAnyHeld) this.#letSomeGoOn();
    });
  }

  /** Accounts in turn, as far as they have places. */
  #handleSome(): void {
    for (let handled = 0; handled < REQUESTS_A_TURN_MAX; handled++) {
      const waiting = this.#waiting.takeOne((account) => this.#hasPlace(account));
      if (waiting === undefined) return;
      const { account, connection, request, response } = waiting;
      if (request.complete || waiting.wasPassedOver || connection.isDisconnected) {
        connection.waiting -= 1;
        if (!connection.isDisconnected) this.#handle(request, response);
      } else {
        // In a place it would keep others from it until its rest has come.
        waiting.wasPassedOver = true;
        connection.isAwaited = true;
        this.#waiting.push(account, waiting);
      }
    }
    this.#schedule();
  }

  /** What else there is to read waits, and everybody is read from in turn. */
  #holdAll(): void {
    for (const connections of this.#byAccount.values()) for (const connection of connections) this.#hold(connection);
  }

  #hold(connection: Connection): void {
    if (connection.isHeld) return;
    connection.isHeld = true;
    if (connection.account === NOBODY) this.#strangers.push(connection);
    else this.#held.push(connection.account, connection);
    // Node goes on reading whenever somebody asks for a body, of a request that had come as well.
    connection.socket.on('resume', pauseAgain);
    connection.socket.pause();
  }

  /** As many as bring a turn's worth, if each brings what it did before. */
  #letSomeGoOn(): void {
    const fearedOfStrangers = this.#letStrangersGoOn();
    const most = this.#places.isShared ? fearedOfStrangers + SHARED_TURN_MAX : HELD_TURN_MAX;
    let feared = fearedOfStrangers;
    let waiting = 0;
    for (let tries = this.#held.length; tries > 0 && feared < most; tries--) {
      const connection = this.#held.takeOne() as Connection;
      if (connection.isDisconnected || this.#mayGoOn(connection)) {
        feared += connection.brought;
        this.#letGo(connection);
      } else {
        this.#held.push(connection.account, connection);
        waiting += 1;
      }
    }
    if (this.#held.length > waiting || (this.#strangers.length > 0 && this.#strangersTimer === null)) this.#schedule();
  }

  /**
   * In each turn, or one now and then while much waits.
   *
   * @returns how many requests they are expected to bring
   */
  #letStrangersGoOn(): number {
    if (this.#strangersTimer !== null) return 0;
    if (this.#waiting.length < WAITING_MAX) {
      const strangers = this.#strangers.take();
      for (const stranger of strangers) this.#letGo(stranger);
      return strangers.length * this.#strangers.expected;
    }
    this.#strangersTimer = setTimeout(() => {
      this.#strangersTimer = null;
      for (const stranger of this.#strangers.take(1)) this.#letGo(stranger);
      this.#schedule();
    }, STRANGERS_EVERY_MS).unref();
    return 0;
  }

  #letGo(connection: Connection): void {
    const { socket } = connection;
    connection.isHeld = false;
    connection.isAwaited = false;
    socket.off('resume', pauseAgain);
    if (connection.brought >= REQUESTS_A_TURN_MAX && !connection.isReadInPieces) {
      connection.isReadInPieces = true;
      // Not before Node has begun to read again: it would leave that to its parser, which gets nothing from now on.
      socket.once('resume', () => readInPieces(socket, () => this.#holdBehindPiece(connection)));
    }
    socket.resume();
  }

  #holdBehindPiece(connection: Connection): void {
    this.#hold(connection);
    this.#schedule();
  }

  #mayGoOn({ account, brought, waiting, isAwaited, socket }: Connection): boolean {
    if (isAwaited) return true;
    if (waiting > 0) return false;
    // Nothing is left behind a piece of it.
    if (brought < REQUESTS_A_TURN_MAX && socket.readableLength === 0) return true;
    const waitingOfAccount = this.#waiting.lengthOf(account);
    // Who is in a place with half a request must come to its end, or the place is never free again.
    if (isAmidRequest(socket)) return waitingOfAccount < WAITING_MAX;
    return waitingOfAccount === 0 && this.#hasPlace(account) && this.#work.hasRoom(account);
  }
}

function isAmidRequest({ parser }: ParsedSocket): boolean {
  return parser?.incoming?.complete === false;
}

function pauseAgain(this: Socket): void {
  this.pause();
}
