// Records in process memory which forms have created a secret. A form that is sent twice to this process, for example
// by a double click, takes effect only once. The second response cannot show the secret again.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Viewer } from '../layout.ts';
import { formField } from '../request-reply.ts';

/** The maximum number of forms that are remembered. */
const SENT_FORMS_MAX = 10_000;

export class SentForms {
  /** Maps each sent form to a promise that resolves when the form has taken effect. Never contains secrets. */
  readonly #sent = new Map<string, Promise<void>>();

  /**
   * Calls `work`, unless the viewer has sent the form before. If `work` fails, the viewer can send the form again.
   *
   * @returns the result of `work`; null if the form was sent before
   */
  async once<Result extends object | string>(
    request: FastifyRequest,
    { userId }: Viewer,
    work: () => Promise<Result>,
  ): Promise<Result | null> {
    const form = `${userId} ${formField(request, 'idempotency_key') || randomUUID()}`;
    const earlier = this.#sent.get(form);
    if (earlier !== undefined) {
      await earlier;
      return null;
    }
    const result = work();
    this.#remember(
      form,
      result.then(() => {}),
    );
    return result;
  }

  #remember(form: string, done: Promise<void>): void {
    this.#sent.set(form, done);
    done.catch(() => this.#sent.delete(form));
    const [oldest] = this.#sent.keys();
    if (this.#sent.size > SENT_FORMS_MAX) this.#sent.delete(oldest as string);
  }
}
