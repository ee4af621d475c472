// Sends the response to bytes that are not a valid HTTP request.

import type { Socket } from 'node:net';
import { PROBLEM_TYPE, problemDocument } from '../problem-reply.ts';
import { type PlainProblem, PROBLEMS } from '../problems.ts';
import { type Connections, connectionOf } from './connections.ts';

const MALFORMED: Readonly<Record<string, PlainProblem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'RequestTimeout',
  HPE_HEADER_OVERFLOW: 'HeadersTooLarge',
};

/** Responds to bytes that the HTTP parser of Node.js rejects. Such bytes never reach Fastify. */
export function answerMalformed(
  connections: Connections,
  error: NodeJS.ErrnoException,
  socket: Socket,
  requestId: () => string,
): void {
  // A client that opens connections in advance would take the response for that of its first request.
  const isUnused = socket.bytesRead === 0;
  if (error.code === 'ECONNRESET' || !socket.writable || isUnused) socket.destroy();
  else connections.endMalformed(connectionOf(socket), () => writeMalformed(error, socket, requestId()));
}

function writeMalformed(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const code = MALFORMED[error.code ?? ''] ?? 'BadRequest';
  const { status, title, detail } = PROBLEMS[code];
  const body = problemDocument(code, requestId, { detail });
  const head = `HTTP/1.1 ${status} ${title}\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  socket.end(head + body);
  // Otherwise, the rest of the request could still arrive, and would be processed.
  if (code === 'RequestTimeout') socket.destroySoon();
}
