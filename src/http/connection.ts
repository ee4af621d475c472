// What is kept of a connection while it lasts: one object on the socket, in which whoever follows its requests has a few
// plain fields. A request costs it some additions; nothing is allocated, listened to or scheduled for one.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Requester } from '../batching/group-commit.ts';
import type { KnownKey, LatestCaller } from './authenticate.ts';

/** From so many in one turn of the event loop on a connection is held. What had come with them, 64 KiB at the most, is still worked on. */
export const REQUESTS_A_TURN_MAX = 64;

const CONNECTION = Symbol('connection');
const PLACE = Symbol('place among the requests of its connection');

type TrackedSocket = Socket & { [CONNECTION]?: Connection };
type PlacedRequest = IncomingMessage & { [PLACE]?: number };

export class Connection implements LatestCaller, Requester {
  readonly socket: Socket;
  /** How many requests came. */
  requests = 0;
  /**
   * The place of the request whose answer closes the connection. Behind it nothing is done any more (RFC 9112, section
   * 9.6): it would be done, and nobody would learn of it.
   */
  last = Number.POSITIVE_INFINITY;
  /** Of the request before, so that the same one need not be looked at twice. */
  authorization = '';
  knownKey: KnownKey | null = null;
  /** 0 until it is known. */
  account = 0;
  /** The latest turn in which it brought anything. */
  turn = -1;
  /** In that turn. Of a connection that brought nothing yet, the most is feared. */
  brought = REQUESTS_A_TURN_MAX;
  isHeld = false;
  /** How many of its requests wait for a place. */
  waiting = 0;
  /** Whether the rest of one that waits is to be read. */
  isAwaited = false;
  isReadInPieces = false;
  /** Whether it is not read since a request on it was refused. */
  isResting = false;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  get hasBrought(): boolean {
    return this.turn !== -1;
  }

  /** Gives a request its place. */
  take(request: IncomingMessage): void {
    this.requests += 1;
    (request as PlacedRequest)[PLACE] = this.requests;
  }

  isLatest(request: IncomingMessage): boolean {
    return placeOf(request) === this.requests;
  }

  /** That the answer to this one closes the connection. */
  endsWith(request: IncomingMessage): void {
    this.last = Math.min(this.last, placeOf(request));
  }

  /** Whether the answer to one of its requests closes it. */
  get isEnding(): boolean {
    return this.last !== Number.POSITIVE_INFINITY;
  }

  /** Whether nobody hears its answers any more. */
  get isDisconnected(): boolean {
    return this.socket.destroyed;
  }

  /** Whether it came behind one whose answer closes the connection. */
  isOver(request: IncomingMessage): boolean {
    return placeOf(request) > this.last;
  }
}

export function connectionOf(socket: TrackedSocket): Connection {
  socket[CONNECTION] ??= new Connection(socket);
  return socket[CONNECTION];
}

function placeOf(request: PlacedRequest): number {
  return request[PLACE] ?? 0;
}
