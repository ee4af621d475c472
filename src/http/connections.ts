// What happens on a connection besides whole requests: bytes that are none, requests that Node lets through although
// they are not in order, and clients that do not read what they asked for.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { connectionOf } from './connection.ts';
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode, problemDocument } from './problem.ts';
import { HEADERS_MAX, type ServerLimits } from './server-limits.ts';

/** Set once something on the connection cannot be understood. */
const GIVEN_UP = Symbol('given up');

/** What Node keeps of a connection: the answer that goes out now, if any. */
type AnsweringSocket = Socket & { _httpMessage?: ServerResponse | null; [GIVEN_UP]?: true };

const MALFORMED: Readonly<Record<string, ProblemCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'RequestTimeout',
  HPE_HEADER_OVERFLOW: 'HeadersTooLarge',
};

export interface Wrong {
  readonly code: ProblemCode;
  readonly detail: string;
}

/** What Node lets through, or refuses without a word of why. Of most headers only the length of the name is looked at. */
export function whatIsWrongWith({ httpVersion, headers, rawHeaders }: IncomingMessage): Wrong | null {
  if (rawHeaders.length > 2 * HEADERS_MAX)
    return { code: 'HeadersTooLarge', detail: `A request may have ${HEADERS_MAX} headers.` };
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 'host'.length && name.toLowerCase() === 'host') hosts += 1;
  }
  // RFC 9112, section 3.2: whoever stands in between may have gone by the other one.
  if (hosts > 1) return { code: 'BadRequest', detail: 'A request names one host that it is for.' };
  // A request line without a version is one of HTTP/0.9, whose answers have no status.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return { code: 'BadRequest', detail: 'A request names its version, HTTP/1.1 or HTTP/1.0.' };
  if (hosts === 0 && httpVersion !== '1.0')
    return { code: 'BadRequest', detail: 'A request names the host that it is for.' };
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return { code: 'BadRequest', detail: 'The only transfer encoding is chunked.' };
  return null;
}

/**
 * Answers what the HTTP parser cannot make sense of, which never reaches a route. Every further piece of it on the same
 * connection is an error again: only the first is answered.
 */
export function answerMalformed(error: NodeJS.ErrnoException, socket: AnsweringSocket, requestId: () => string): void {
  const isDisconnected = error.code === 'ECONNRESET' || !socket.writable;
  if (isDisconnected) socket.destroy();
  // What comes behind a request whose answer closes the connection is of no account, and so is the rest of that request.
  if (isDisconnected || socket[GIVEN_UP] || connectionOf(socket).isEnding) return;
  socket[GIVEN_UP] = true;
  whenIdle(socket, () => writeMalformed(error, socket, requestId()));
}

/**
 * Answers go out in the order of the requests: what is wrong with the bytes behind a whole request waits for its answer.
 * What is wrong with the request itself is said at once.
 */
function whenIdle(socket: AnsweringSocket, answer: () => void): void {
  const { _httpMessage: underWay } = socket;
  if (underWay?.req.complete && socket.writable) underWay.once('close', () => setImmediate(whenIdle, socket, answer));
  else answer();
}

function writeMalformed(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const code = MALFORMED[error.code ?? ''] ?? 'BadRequest';
  const { status, title } = PROBLEMS[code];
  const body = problemDocument(code, requestId, { detail: 'The connection is closed.' });
  const head = `HTTP/1.1 ${status} ${title}\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  socket.end(head + body);
}

export function boundConnections(server: Server, { connectionsMax, unreadAnswerMs }: ServerLimits): void {
  server.maxConnections = connectionsMax;
  // Node's own bound drops what is beyond it; ours refuses the request.
  server.maxHeadersCount = 0;
  closeUnread(server, unreadAnswerMs);
}

/**
 * Closes connections on which an answer has waited for so long without any of it being taken. Node's timer runs while
 * nothing moves in either direction, so it also ends for clients that wait for us: they go on waiting.
 */
function closeUnread(server: Server, unreadAnswerMs: number): void {
  server.timeout = unreadAnswerMs;
  server.on('timeout', (socket: AnsweringSocket) => {
    const waitsForUs = socket._httpMessage && socket.writableLength === 0;
    if (waitsForUs) socket.setTimeout(unreadAnswerMs);
    else socket.destroy();
  });
}
