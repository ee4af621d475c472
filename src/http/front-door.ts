// What is done with a request before Fastify sees it, which is next to nothing while there is room: it is counted on its
// connection. Beyond the room that its account may have it is refused here, with an answer that is ready but for the id
// of the request, so that a server which is asked for ten times what it can do goes on doing it. And where accounts share
// the server, what one brings beyond its places waits for its turn.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticator } from './authenticate.ts';
import { type Connection, connectionOf } from './connection.ts';
import type { ConnectionTurns, RequestHandler } from './connection-turns.ts';
import { FAULT_DETAILS, PROBLEM_TYPE, PROBLEMS, problemDocument, RETRY_AFTER_SECONDS } from './problem.ts';
import { RefusedConnections } from './refused-connections.ts';
import type { RequestCounts } from './request-metrics.ts';
import type { WorkInFlight } from './work-in-flight.ts';

interface FrontDoorOptions {
  readonly authenticator: Authenticator;
  readonly work: WorkInFlight;
  readonly turns: ConnectionTurns;
  readonly requests: RequestCounts;
  readonly requestId: () => string;
  readonly handle: RequestHandler;
}

/** Where the id goes; no id has these characters. */
const ID = '<id>';
const [BEFORE_ID = '', AFTER_ID = ''] = problemDocument('Overloaded', ID, { detail: FAULT_DETAILS.Overloaded }).split(
  ID,
);
const BYTES_BESIDE_ID = Buffer.byteLength(BEFORE_ID + AFTER_ID);

export class FrontDoor {
  readonly #authenticator: Authenticator;
  readonly #work: WorkInFlight;
  readonly #turns: ConnectionTurns;
  readonly #requests: RequestCounts;
  readonly #requestId: () => string;
  readonly #handle: RequestHandler;
  readonly #refused = new RefusedConnections();
  /** Those whose work is bounded. */
  readonly #paths = new Set<string>();

  constructor({ authenticator, work, turns, requests, requestId, handle }: FrontDoorOptions) {
    this.#authenticator = authenticator;
    this.#work = work;
    this.#turns = turns;
    this.#requests = requests;
    this.#requestId = requestId;
    this.#handle = handle;
  }

  /** The path is one whose requests wait and are refused here. */
  guard(path: string): void {
    this.#paths.add(path);
  }

  /** Handles the request, now or in its turn, or refuses it. */
  enter(request: IncomingMessage, response: ServerResponse): void {
    const connection = connectionOf(request.socket);
    connection.take(request);
    this.#turns.count(connection);
    if (this.#turns.isCalm || !this.#isGuarded(request)) this.#handle(request, response);
    else this.#enterCrowd(connection, request, response);
  }

  /** A connection may be a proxy's, on which each request is of another account. */
  #enterCrowd(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    const account = this.#authenticator.accountOf(request, connection);
    if (account !== null) this.#turns.recognise(connection, account);
    const mayEnter = !this.#work.isFull && (account === null || this.#turns.hasRoom(account));
    if (!mayEnter) this.#refuse(connection, request, response);
    else if (this.#turns.mustWait(connection, account)) this.#turns.wait(account, { connection, request, response });
    else this.#handle(request, response);
  }

  #isGuarded({ url = '' }: IncomingMessage): boolean {
    return this.#paths.has(pathOf(url));
  }

  #refuse(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    const id = this.#requestId();
    this.#requests.countRefused(pathOf(request.url ?? ''), id, 'Overloaded');
    const headers = [
      'content-type',
      PROBLEM_TYPE,
      'content-length',
      String(BYTES_BESIDE_ID + id.length),
      'retry-after',
      String(RETRY_AFTER_SECONDS),
      'cache-control',
      'no-store',
      'x-content-type-options',
      'nosniff',
    ];
    response.writeHead(PROBLEMS.Overloaded.status, headers).end(BEFORE_ID + id + AFTER_ID);
    this.#refused.rest(connection);
  }
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}
