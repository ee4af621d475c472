// A client that closes its half of a connection may still wait for its answers, or it may have gone: the same packet says
// both. Whoever waits is answered. To find out who does not, an answer that takes its time is preceded by `100 Continue`,
// which every client passes over (RFC 9110, section 15.2): where nobody listens the network says so, and what was asked
// there and is not begun is dropped.

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const LOOK_EVERY_MS = 100;
/** Looks that only pass, so that an answer in good time comes alone. */
const LOOKS_WITHOUT_WORD = 1;
/** The first word learns nothing itself: its echo is met by the second. */
const WORDS = 2;

type AnsweringSocket = Socket & { _httpMessage?: ServerResponse | null };

export function answerHalfClosed(server: Server): void {
  // Node's own name for it. Without, the first half that is closed closes the other.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  const looksAt = new Map<AnsweringSocket, number>();
  let timer: NodeJS.Timeout | null = null;
  const look = () => {
    for (const [socket, looks] of looksAt) {
      if (looks >= LOOKS_WITHOUT_WORD) sendWord(socket);
      if (looks + 1 === LOOKS_WITHOUT_WORD + WORDS || !isAwaited(socket)) looksAt.delete(socket);
      else looksAt.set(socket, looks + 1);
    }
    if (looksAt.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
  server.on('connection', (socket: AnsweringSocket) => {
    socket.once('end', () => {
      if (!isAwaited(socket)) return;
      looksAt.set(socket, 0);
      timer ??= setInterval(look, LOOK_EVERY_MS).unref();
    });
  });
}

/** Whether there is a request that is not answered. */
function isAwaited(socket: AnsweringSocket): boolean {
  return !socket.destroyed && Boolean(socket._httpMessage);
}

function sendWord({ destroyed, _httpMessage: answer }: AnsweringSocket): void {
  const takesIt = answer?.req.httpVersion === '1.1' && !answer.headersSent;
  if (!destroyed && takesIt) answer.writeContinue();
}
