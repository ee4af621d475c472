// A connection on which much arrives at once is read in pieces. Node takes 64 KiB from the kernel and hands all requests in
// it over before anything else happens: three hundred, or some milliseconds in which nobody else is served. Here a piece
// goes to its parser and the connection is held; the rest stays with the socket until somebody lets it go on.

import type { Socket } from 'node:net';

/** Some twenty requests. */
export const PIECE_BYTES = 4 * 1024;

type DataListener = (chunk: Buffer) => void;

/** What Node sets while the answers on the connection are not taken; the parser takes nothing then. */
type AnsweringSocket = Socket & { _paused?: boolean };

/**
 * Puts itself between the socket, which has to be reading and outside of its parser, and Node's own reader.
 *
 * @param hold called behind each piece that is not the last, with the socket paused
 */
export function readInPieces(socket: AnsweringSocket, hold: () => void): void {
  const readers = socket.listeners('data') as DataListener[];
  socket.removeAllListeners('data');
  // Whoever listens makes Node hand the bytes to JavaScript first, rather than to the parser.
  socket.on('data', (chunk: Buffer) => {
    const piece = socket._paused ? chunk.subarray(0, 0) : chunk.subarray(0, PIECE_BYTES);
    const isLast = piece.length === chunk.length;
    if (!isLast) {
      socket.pause();
      socket.unshift(chunk.subarray(piece.length));
      if (!socket._paused) hold();
    }
    if (piece.length > 0) for (const reader of readers) reader(piece);
    // Whoever asks for the body of a request, also of one that has come, makes the socket go on.
    if (!isLast) socket.pause();
  });
}
