// All client connections: bounds their number, processes the requests of each in their order, and disconnects clients that
// read nothing of their answers.
//
// Requests of one connection are processed one at a time. So a pipelined read sees the write before it, a write does not
// overtake the read before it (RFC 9112, section 9.3.2), and one socket cannot start thousands of handlers:
//
//   arrives ──▶ begun ──▶ answered ──▶ the next one is begun, in the next turn of the event loop
//      └── the one before is not answered: pipelined, and the socket is not read until all of them are begun

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Requester } from '../../batching/group-commit.ts';
import type { LatestKey } from '../auth/authenticator.ts';
import { type ServerLimits, SURPLUS_CONNECTIONS_MAX } from '../limits.ts';
import { type PausableConnection, Reading } from './reading.ts';

/** How often unread answers are looked for within the time that they are allowed. */
const UNREAD_LOOKS = 30;

/** One for the process. */
export class Connections {
  readonly #open = new Set<Connection>();
  readonly #reading = new Reading(this.#open);
  readonly #limits: ServerLimits;

  constructor(limits: ServerLimits) {
    this.#limits = limits;
  }

  /** Fastify has a server for each address of `localhost`. */
  attach(server: Server, handle: RequestListener): void {
    const { connectionsMax, unreadAnswerMs } = this.#limits;
    const enter: RequestListener = (request, response) => this.#enter({ request, response, handle });
    server.on('request', enter).on('checkExpectation', enter);
    server.maxConnections = connectionsMax + SURPLUS_CONNECTIONS_MAX;
    server.on('connection', (socket) => {
      const connection = connectionOf(socket);
      connection.isSurplus = this.#open.size >= connectionsMax;
      this.#open.add(connection);
      this.#reading.begin(connection);
      socket.once('close', () => this.#open.delete(connection));
    });
    const timer = setInterval(() => this.#disconnectUnread(), unreadAnswerMs / UNREAD_LOOKS).unref();
    server.once('close', () => clearInterval(timer));
  }

  /** Handles a request once those before it on its connection are answered. */
  #enter(arrived: ArrivedRequest): void {
    const connection = connectionOf(arrived.request.socket);
    if (connection.isClosing) return;
    // Node gives a response its socket when the responses before it are sent.
    if (arrived.response.socket !== null) {
      begin(connection, arrived);
      return;
    }
    if (connection.pipelined.length === 0) this.#whenAnswered(connection);
    connection.pipelined.push(arrived);
    this.#reading.pipeline(connection);
  }

  /** Answers bytes that are not HTTP, after the requests before them. Only the first of them on a connection is answered. */
  endMalformed(connection: Connection, answer: () => void): void {
    if (connection.isClosing || connection.answerMalformed !== null) return;
    connection.answerMalformed = answer;
    if (connection.pipelined.length > 0) return;
    const { begun } = connection;
    // If they are part of the request itself, it will never be whole.
    if (begun === null || begun.writableFinished || !begun.req.complete) answer();
    else this.#whenAnswered(connection);
  }

  #whenAnswered(connection: Connection): void {
    connection.begun?.once('close', () => setImmediate(() => this.#beginNext(connection)));
  }

  #beginNext(connection: Connection): void {
    const { pipelined, answerMalformed } = connection;
    if (connection.isDisconnected || connection.isClosing) {
      this.#forget(connection);
      return;
    }
    const [next] = pipelined;
    if (next === undefined || (answerMalformed !== null && !next.request.complete)) {
      this.#forget(connection);
      answerMalformed?.();
      return;
    }
    pipelined.shift();
    begin(connection, next);
    if (pipelined.length > 0 || answerMalformed !== null) this.#whenAnswered(connection);
    this.#reading.unpipeline(connection, 1);
  }

  #forget(connection: Connection): void {
    connection.isClosing = true;
    this.#reading.unpipeline(connection, connection.pipelined.splice(0).length);
  }

  #disconnectUnread(): void {
    const nowMs = performance.now();
    for (const connection of this.#open) {
      const { socket, sentBytes } = connection;
      if (socket.writableLength === 0) {
        connection.unreadSinceMs = null;
        continue;
      }
      connection.sentBytes = socket.bytesWritten - socket.writableLength;
      if (connection.unreadSinceMs === null || connection.sentBytes !== sentBytes) connection.unreadSinceMs = nowMs;
      else if (nowMs - connection.unreadSinceMs >= this.#limits.unreadAnswerMs) socket.destroy();
    }
  }
}

function begin(connection: Connection, { request, response, handle }: ArrivedRequest): void {
  connection.begun = response;
  handle(request, response);
}

interface ArrivedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly handle: RequestListener;
}

const CONNECTION = Symbol('connection');

/** Kept on its socket, with a few plain fields, so that a request which is not pipelined costs nothing to track. */
export class Connection implements LatestKey, Requester, PausableConnection {
  readonly socket: Socket;
  /** Whether it was opened beyond `MAX_CONNECTIONS`: its first request is refused, and the connection closed. */
  isSurplus = false;
  /** Of the latest valid key. */
  authorization = '';
  hash = '';
  account = 0;
  /** The response to the latest request that was begun. */
  begun: ServerResponse | null = null;
  /** Whether its socket is not read, since it or others pipeline. */
  isPaused = false;
  /** Requests behind the one that was begun, in their order. */
  readonly pipelined: ArrivedRequest[] = [];
  /** Answers bytes behind the requests that are not HTTP; null while there are none. */
  answerMalformed: (() => void) | null = null;
  /** Whether a response closes it. Requests behind that one are not processed (RFC 9112, section 9.6). */
  isClosing = false;
  /** Bytes that the client had taken at the latest look, and since when it has taken no more. */
  sentBytes = 0;
  unreadSinceMs: number | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  get isDisconnected(): boolean {
    return this.socket.destroyed;
  }
}

export function connectionOf(socket: Socket & { [CONNECTION]?: Connection }): Connection {
  socket[CONNECTION] ??= new Connection(socket);
  return socket[CONNECTION];
}
