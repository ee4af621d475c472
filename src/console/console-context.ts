// What the routes of the console share: settings, the viewer of a request, rate limits, and the identity module. The latter
// is opened by the first request that needs it, and opened again after a failure, so that trouble with the console's
// tables does not affect the API.

import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { SignUpPolicy } from '../accounts/membership.ts';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { ConsoleDatabase } from '../store/console-database.ts';
import type { Stores } from '../store/stores.ts';
import type { Attempt } from './identity/attempt-limiter.ts';
import type { Identity } from './identity/identity.ts';
import type { MailSettings } from './identity/mailer.ts';
import type { Viewer } from './layout.ts';
import { sendError } from './request-reply.ts';
import { isLoopback, readCookie, type SessionCookie, sessionCookie } from './session-cookie.ts';

export interface ConsoleSettings {
  /** The origin at which users reach Scrip; null if it is the one on which Scrip listens. */
  readonly publicUrl: string | null;
  readonly signUp: SignUpPolicy;
  /** Null without a mail server. */
  readonly mail: MailSettings | null;
}

export interface ConsoleOptions {
  readonly stores: {
    readonly console: Stores['console'];
    readonly ledger: Pick<Stores['ledger'], 'load'>;
    readonly keys: Pick<Stores['keys'], 'createFor' | 'list' | 'revoke'>;
  };
  readonly commit: Pick<GroupCommit, 'submit'>;
  readonly settings: ConsoleSettings;
  readonly openDatabase: () => Promise<ConsoleDatabase>;
  readonly logger: Pick<FastifyBaseLogger, 'error'>;
  readonly now: () => number;
  /** Called once the server listens. */
  readonly listeningUrl: () => string;
}

export class ConsoleContext {
  readonly options: ConsoleOptions;
  #identity: Promise<Identity> | null = null;

  constructor(options: ConsoleOptions) {
    this.options = options;
  }

  get settings(): ConsoleSettings {
    return this.options.settings;
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

  /** Null where the cookie would be sent unencrypted. */
  cookieFor({ headers }: FastifyRequest): SessionCookie | null {
    return sessionCookie(this.settings.publicUrl, headers.host);
  }

  sessionTokenOf(request: FastifyRequest): string | null {
    const cookie = this.cookieFor(request);
    return cookie && readCookie(cookie, request.headers.cookie);
  }

  async viewerOf(request: FastifyRequest): Promise<Viewer | null> {
    const token = this.sessionTokenOf(request);
    return token === null ? null : (await this.identity()).sessions.viewer(token);
  }

  /** The origin for links on pages. The `Host` of a request is used only if it is a loopback name: clients can forge it. */
  publicUrlFor({ headers }: FastifyRequest): string {
    return (
      this.settings.publicUrl ?? (isLoopback(headers.host) ? `http://${headers.host}` : this.options.listeningUrl())
    );
  }

  /** Counts an attempt. @returns true if there were too many; the response has then been sent */
  async isRateLimited(reply: FastifyReply, attempt: Attempt): Promise<boolean> {
    const waitMs = await (await this.identity()).attempts.consume(attempt);
    if (waitMs === 0) return false;
    const minutes = Math.ceil(waitMs / 60_000);
    const detail = `Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
    reply.header('retry-after', Math.ceil(waitMs / 1_000));
    sendError(reply, 429, { title: 'Too many attempts', detail });
    return true;
  }

  attemptOf(request: FastifyRequest, action: Attempt['action'], email: string): Attempt {
    return { action, email, client: this.#clientOf(request) };
  }

  /** The client for rate limits: its address, or its /64 network for IPv6, which one client usually has for itself. */
  #clientOf({ headers, socket }: FastifyRequest): string {
    // The TLS proxy appends the address of its client to what the client itself sent.
    const forwarded = this.settings.publicUrl?.startsWith('https:') ? headers['x-forwarded-for'] : undefined;
    const address = forwarded?.toString().split(',').at(-1)?.trim() || socket.remoteAddress || '';
    return address.includes('.') ? address.replace(/^::ffff:/i, '') : address.split(':').slice(0, 4).join(':');
  }

  async #openIdentity(): Promise<Identity> {
    const { openDatabase, settings, logger, now, listeningUrl } = this.options;
    const { openIdentity } = await import('./identity/identity.ts');
    const publicUrl = () => settings.publicUrl ?? listeningUrl();
    const mailer = settings.mail && (await import('./identity/mailer.ts')).createMailer(settings.mail, publicUrl);
    const onBackgroundError = (error: unknown) => logger.error({ err: error }, 'the console could not send an email');
    return openIdentity({ database: await openDatabase(), signUp: settings.signUp, mailer, now, onBackgroundError });
  }
}
