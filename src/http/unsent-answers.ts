// Large answers that are ready, and that their clients have not taken yet. A small one is in the hands of the kernel at once;
// a balance of thousands of cycles waits in memory for as long as its client reads, and a client that pipelines has
// hundreds of them made before it reads the first. As with places, an account may fill as much of the room as it leaves free.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Of all accounts; one that is alone has half. */
export const UNSENT_BYTES_MAX = 128 * 2 ** 20;
/** Smaller answers are not counted: hundreds of them are as much as one request with its headers. */
export const LARGE_ANSWER_BYTES = 64 * 1024;

/** One for the process. */
export class UnsentAnswers {
  readonly #byAccount = new Map<number, number>();
  /** What is to be done when a connection closes, by its socket. */
  readonly #closings = new WeakMap<Socket, Set<() => void>>();
  #bytes = 0;

  /**
   * Counts an answer until it is sent, or its connection closed.
   *
   * @returns false when there is no room for it; where nothing else is unsent, there is for one of any size
   */
  begin(account: number, bytes: number, response: ServerResponse): boolean {
    if (bytes < LARGE_ANSWER_BYTES) return true;
    const own = this.#byAccount.get(account) ?? 0;
    if (this.#bytes > 0 && own + bytes > UNSENT_BYTES_MAX - this.#bytes) return false;
    this.#add(account, bytes);
    const closing = this.#closingOf(response);
    const end = () => {
      if (closing.delete(end)) this.#add(account, -bytes);
    };
    closing.add(end);
    response.once('finish', end);
    return true;
  }

  #add(account: number, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#byAccount.get(account) ?? 0) + bytes;
    if (own === 0) this.#byAccount.delete(account);
    else this.#byAccount.set(account, own);
  }

  /** One listener for a connection, however many answers wait on it: those that never got their turn are told of nothing else. */
  #closingOf({ req: { socket } }: ServerResponse): Set<() => void> {
    const known = this.#closings.get(socket);
    if (known !== undefined) return known;
    const closing = new Set<() => void>();
    this.#closings.set(socket, closing);
    socket.once('close', () => {
      for (const end of closing) end();
    });
    return closing;
  }
}
