// Sends mail in the background, so that the response time does not reveal whether mail is sent.

import type { Mailer } from './mailer.ts';

export class OutgoingMail {
  readonly #mailer: Mailer | null;
  readonly #onError: (error: unknown) => void;
  readonly #sending = new Set<Promise<void>>();

  /** @param mailer null if no mail server is configured */
  constructor(mailer: Mailer | null, onError: (error: unknown) => void) {
    this.#mailer = mailer;
    this.#onError = onError;
  }

  get isPossible(): boolean {
    return this.#mailer !== null;
  }

  sendLater(send: (mailer: Mailer) => Promise<void>): void {
    if (this.#mailer === null) return;
    const done = send(this.#mailer)
      .catch(this.#onError)
      .finally(() => void this.#sending.delete(done));
    this.#sending.add(done);
  }

  async done(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }
}
