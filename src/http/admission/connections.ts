// Manages the client connections: limits their number, processes their requests in order, and disconnects clients that
// do not read their responses.
//
// Requests on a connection are processed one at a time. One socket therefore cannot start thousands of handlers, a
// pipelined read sees all earlier writes, and a write does not overtake an earlier read (RFC 9112, section 9.3.2). A
// request passes through these steps:
//
//   arrives ──▶ processed ──▶ answered ──▶ the next request is processed, in the next turn of the event loop
//      └── the previous request is not answered yet: queued; the socket is not read until the queue is empty

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Requester } from '../../batching/group-commit.ts';
import type { LatestKey } from '../auth/authenticator.ts';
import { type ServerLimits, SURPLUS_CONNECTIONS_MAX } from '../limits.ts';
import { type PausableConnection, Reading } from './reading.ts';

const UNREAD_LOOKS = 30;

export class Connections {
  readonly #open = new Set<Connection>();
  readonly #reading = new Reading(this.#open);
  readonly #limits: ServerLimits;

  constructor(limits: ServerLimits) {
    this.#limits = limits;
  }

  /** Call this for each server: Fastify starts one server for each address that `localhost` resolves to. */
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

  #enter(arrived: ArrivedRequest): void {
    const connection = connectionOf(arrived.request.socket);
    if (connection.isClosing) return;
    // Node.js assigns the socket to a response only after all earlier responses are sent.
    if (arrived.response.socket !== null) {
      begin(connection, arrived);
      return;
    }
    if (connection.pipelined.length === 0) this.#whenAnswered(connection);
    connection.pipelined.push(arrived);
    this.#reading.pipeline(connection);
  }

  /** Calls `answer` after all earlier requests are answered. `answer` sends the response to malformed bytes. */
  endMalformed(connection: Connection, answer: () => void): void {
    if (connection.isClosing || connection.answerMalformed !== null) return;
    connection.answerMalformed = answer;
    if (connection.pipelined.length > 0) return;
    const { begun } = connection;
    // If the malformed bytes are part of a request, the request never completes, so do not wait for its response.
    if (begun === null || begun.writableFinished || !begun.req.complete) {
      connection.isClosing = true;
      answer();
    } else {
      this.#whenAnswered(connection);
    }
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
      // The client of a connection that Scrip has ended might never end it.
      if (socket.writableLength === 0 && !socket.writableEnded) {
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

/** The state of a connection, stored on its socket. */
export class Connection implements LatestKey, Requester, PausableConnection {
  readonly socket: Socket;
  /**
   * True for a connection beyond `MAX_CONNECTIONS`. Scrip refuses the first request on such a connection, unless the
   * request is for one of the `OPERATOR_PATHS`. After the response, Scrip closes the connection.
   */
  isSurplus = false;
  authorization = '';
  hash = '';
  account = 0;
  begun: ServerResponse | null = null;
  isPaused = false;
  readonly pipelined: ArrivedRequest[] = [];
  answerMalformed: (() => void) | null = null;
  /** Whether Scrip is closing the connection. If so, further requests are ignored (RFC 9112, section 9.6). */
  isClosing = false;
  sentBytes = 0;
  /** The client has accepted no bytes since this time; null if there are no bytes to send. */
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
