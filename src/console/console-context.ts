// What all routes of the console work with: who is asking, from where, what is known about people. The latter is opened
// with the first request that needs it, and again after it failed, so that trouble with the console's tables is trouble
// of the console alone.

import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { SignUpPolicy } from '../accounts/membership.ts';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { ConsoleDatabase } from '../store/console-database.ts';
import type { Store } from '../store/store.ts';
import type { Subject } from './identity/attempts.ts';
import type { Identity } from './identity/identity.ts';
import type { Viewer } from './identity/sessions.ts';
import { type Page, page } from './layout.ts';
import type { MailSettings } from './mail.ts';
import { isLoopback, readCookie, type SessionCookie, sessionCookie } from './session.ts';

export interface ConsoleSettings {
  /** The origin at which people reach Scrip; null when it is the one at which it listens. */
  readonly publicUrl: string | null;
  readonly signUp: SignUpPolicy;
  /** Null without a mail server. */
  readonly mail: MailSettings | null;
}

export interface ConsoleOptions {
  readonly store: Pick<Store, 'accountReads' | 'apiKeys' | 'cycles'>;
  readonly commit: Pick<GroupCommit, 'submit'>;
  readonly settings: ConsoleSettings;
  readonly openDatabase: () => Promise<ConsoleDatabase>;
  readonly logger: FastifyBaseLogger;
  readonly now: () => number;
  /** Where Scrip listens, once it does. */
  readonly listeningUrl: () => string;
}

export class ConsoleContext {
  readonly settings: ConsoleSettings;
  readonly options: ConsoleOptions;
  #identity: Promise<Identity> | null = null;

  constructor(options: ConsoleOptions) {
    this.options = options;
    this.settings = options.settings;
  }

  get hasMail(): boolean {
    return this.settings.mail !== null;
  }

  identity(): Promise<Identity> {
    this.#identity ??= this.#openIdentity().catch((error) => {
      this.#identity = null;
      throw error;
    });
    return this.#identity;
  }

  async close(): Promise<void> {
    const identity = await this.#identity?.catch(() => null);
    await identity?.close();
  }

  /** Null where a session would travel in the clear. */
  cookieOf({ headers }: FastifyRequest): SessionCookie | null {
    return sessionCookie(this.settings.publicUrl, headers.host);
  }

  /** The secret of the session that the browser holds. */
  sessionOf(request: FastifyRequest): string | null {
    const cookie = this.cookieOf(request);
    return cookie && readCookie(cookie, request.headers.cookie);
  }

  async viewerOf(request: FastifyRequest): Promise<Viewer | null> {
    const session = this.sessionOf(request);
    return session === null ? null : (await this.identity()).sessions.viewer(session);
  }

  /** For links that are shown to whoever asks. A host that is not this machine's own may be somebody's invention. */
  publicUrlFor({ headers }: FastifyRequest): string {
    return (
      this.settings.publicUrl ?? (isLoopback(headers.host) ? `http://${headers.host}` : this.options.listeningUrl())
    );
  }

  /**
   * Counts an attempt of each, and answers when one has been tried too often.
   *
   * @returns whether it answered
   */
  async isTooOften(reply: FastifyReply, subjects: readonly Subject[]): Promise<boolean> {
    const waitMs = await (await this.identity()).attempts.take(subjects);
    if (waitMs === 0) return false;
    const minutes = Math.ceil(waitMs / 60_000);
    reply.header('retry-after', Math.ceil(waitMs / 1_000));
    show(reply.code(429), {
      title: 'Too many attempts',
      body: `<p>There were too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.</p>`,
    });
    return true;
  }

  /** By which the attempts of one client are counted: its address; of IPv6 the network, which is one client's as a whole. */
  clientOf({ headers, socket }: FastifyRequest): string {
    // The proxy that ends TLS says who asked it, behind whatever the client itself claimed.
    const forwarded = this.settings.publicUrl?.startsWith('https:') ? headers['x-forwarded-for'] : undefined;
    const address =
      String(forwarded ?? '')
        .split(',')
        .at(-1)
        ?.trim() ||
      socket.remoteAddress ||
      '';
    return address.includes('.') ? address.replace(/^::ffff:/i, '') : address.split(':').slice(0, 4).join(':');
  }

  async #openIdentity(): Promise<Identity> {
    const { openDatabase, settings, logger, now, listeningUrl } = this.options;
    const { openIdentity } = await import('./identity/identity.ts');
    const letters =
      settings.mail && (await import('./mail.ts')).lettersBy(settings.mail, () => settings.publicUrl ?? listeningUrl());
    const onTrouble = (error: unknown) => logger.error({ err: error }, 'the console could not finish what it began');
    return openIdentity({ database: await openDatabase(), signUp: settings.signUp, letters, now, onTrouble });
  }
}

/** A form that was refused is shown again like any page, with 200: browsers log a page of another status as an error. */
export function show(reply: FastifyReply, content: Partial<Page> & Pick<Page, 'title' | 'body'>): FastifyReply {
  const text = page({ viewer: null, current: null, notice: null, ...content });
  return reply.header('content-type', 'text/html; charset=utf-8').send(text);
}

/** After a form: what a reload then asks for again is the page, not the change. */
export function goTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

/** A field of the form; empty when it is not there, or there twice. */
export function fieldOf({ body }: FastifyRequest, name: string): string {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' ? value : '';
}

export function parameterOf({ params }: FastifyRequest, name: string): string {
  return (params as Record<string, string>)[name] ?? '';
}
