// Sends emails in the background, so that the response time does not reveal whether an email is sent.

import type { AttemptLimiter } from './attempt-limiter.ts';
import type { Mailer } from './mailer.ts';

type MayMail = AttemptLimiter['mayMail'];

export class OutgoingMail {
  readonly #mailer: Mailer | null;
  readonly #mayMail: MayMail;
  readonly #onError: (error: unknown) => void;
  readonly #sending = new Set<Promise<void>>();

  /**
   * @param mailer null if no mail server is configured
   * @param mayMail whether Scrip may send another email to an address now
   */
  constructor(mailer: Mailer | null, mayMail: MayMail, onError: (error: unknown) => void) {
    this.#mailer = mailer;
    this.#mayMail = mayMail;
    this.#onError = onError;
  }

  get isPossible(): boolean {
    return this.#mailer !== null;
  }

  /** Sends nothing if the address has received too many emails with this purpose. */
  sendLater(purpose: Parameters<MayMail>[0], email: string, send: (mailer: Mailer) => Promise<void>): void {
    const mailer = this.#mailer;
    if (mailer === null) return;
    const done = this.#mayMail(purpose, email)
      .then((may) => (may ? send(mailer) : undefined))
      .catch(this.#onError)
      .finally(() => void this.#sending.delete(done));
    this.#sending.add(done);
  }

  async done(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }
}
