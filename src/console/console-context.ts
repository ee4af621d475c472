// The parts that all routes of the console share: settings, the signed-in user, rate limits, and the identity module.
// The identity module is opened only when a request needs it, so a problem with the console's database tables does not
// affect the API.

import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import { isLoopback, isLoopbackAddress } from '../accounts/loopback.ts';
import type { SignUpPolicy } from '../accounts/membership.ts';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { Thresholds } from '../events/thresholds.ts';
import type { AddressRules } from '../events/webhooks/addresses.ts';
import type { Endpoints } from '../events/webhooks/endpoints.ts';
import type { SecretBox } from '../events/webhooks/secrets.ts';
import type { Instant } from '../ledger/instant.ts';
import type { AccountDatabase } from '../store/account-database.ts';
import type { Stores } from '../store/stores.ts';
import { clientNetwork } from './client-network.ts';
import type { Attempt } from './identity/attempt-limiter.ts';
import type { Identity } from './identity/identity.ts';
import type { MailSettings } from './identity/mailer.ts';
import type { Viewer } from './layout.ts';
import { sendError } from './request-reply.ts';
import { readCookie, type SessionCookie, sessionCookie } from './session-cookie.ts';

export interface ConsoleSettings {
  /** The origin at which users reach Scrip; null if users reach Scrip at the address that it listens on. */
  readonly publicUrl: string | null;
  readonly signUp: SignUpPolicy;
  /** Null if no mail server is configured. */
  readonly mail: MailSettings | null;
}

export interface ConsoleOptions {
  readonly stores: {
    readonly console: Stores['console'];
    readonly ledger: Pick<Stores['ledger'], 'load' | 'history' | 'statesAt' | 'find' | 'due'>;
    readonly keys: Pick<Stores['keys'], 'createFor' | 'list' | 'revoke'>;
    readonly testClock?: Stores['testClock'];
  };
  readonly commit: Pick<GroupCommit, 'submit'>;
  readonly settings: ConsoleSettings;
  readonly openDatabase: () => Promise<AccountDatabase>;
  readonly webhooks: {
    /** Called when an endpoint gets a secret. @throws UnusableSecret, CannotOpen */
    readonly openSecrets: () => SecretBox;
    readonly rules: AddressRules;
  };
  readonly logger: Pick<FastifyBaseLogger, 'error'>;
  readonly now: () => number;
  /** Call this only after the server has started to listen. */
  readonly listeningUrl: () => string;
}

export interface Webhooks {
  readonly endpoints: Endpoints;
  readonly thresholds: Thresholds;
}

export class ConsoleContext {
  readonly options: ConsoleOptions;
  #identity: Promise<Identity> | null = null;
  #webhooks: Promise<Webhooks> | null = null;

  constructor(options: ConsoleOptions) {
    this.options = options;
  }

  get settings(): ConsoleSettings {
    return this.options.settings;
  }

  /** Null if the ledger has no test clock. */
  get testClock(): Stores['testClock'] {
    return this.options.stores.testClock ?? null;
  }

  /**
   * The time of the test clock, or the machine's time if there is no test clock or its time could not be read.
   * Accounts, API keys and sessions always use the machine's time.
   */
  ledgerNow({ testTime }: FastifyRequest): Instant {
    return testTime ?? this.options.now();
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

  /** The webhooks and thresholds, which are in the same database as the console users. */
  webhooks(): Promise<Webhooks> {
    this.#webhooks ??= this.#openWebhooks().catch((error) => {
      this.#webhooks = null;
      throw error;
    });
    return this.#webhooks;
  }

  async close(): Promise<void> {
    const identity = await this.#identity?.catch(() => null);
    await identity?.close();
  }

  /** Returns null if the browser would send the cookie unencrypted over a network. */
  cookieFor({ headers }: FastifyRequest): SessionCookie | null {
    return sessionCookie(this.settings.publicUrl, headers);
  }

  sessionTokenOf(request: FastifyRequest): string | null {
    const cookie = this.cookieFor(request);
    return cookie && readCookie(cookie, request.headers.cookie);
  }

  async viewerOf(request: FastifyRequest): Promise<Viewer | null> {
    const token = this.sessionTokenOf(request);
    return token === null ? null : (await this.identity()).sessions.viewer(token);
  }

  /**
   * Whether the request seems to come directly, without a proxy, from the machine that runs Scrip. Always false if
   * `PUBLIC_URL` is set.
   */
  isLocal({ headers, socket }: FastifyRequest): boolean {
    const isForwarded = ['forwarded', 'x-forwarded-for', 'via'].some((name) => headers[name] !== undefined);
    return (
      this.settings.publicUrl === null &&
      !isForwarded &&
      isLoopback(headers.host) &&
      isLoopbackAddress(socket.remoteAddress)
    );
  }

  /**
   * The origin for links. The `Host` header is used only if it is a loopback address, because clients can forge this
   * header.
   */
  publicUrlFor({ headers }: FastifyRequest): string {
    return (
      this.settings.publicUrl ?? (isLoopback(headers.host) ? `http://${headers.host}` : this.options.listeningUrl())
    );
  }

  /** Counts an attempt. If there were too many attempts, sends an error page and returns true. */
  async isRateLimited(reply: FastifyReply, attempt: Attempt, viewer: Viewer | null = null): Promise<boolean> {
    const waitMs = await (await this.identity()).attempts.consume(attempt);
    if (waitMs === 0) return false;
    const minutes = Math.ceil(waitMs / 60_000);
    const detail = `Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`;
    reply.header('retry-after', Math.ceil(waitMs / 1_000));
    sendError(reply, 429, { title: 'Too many attempts', detail }, viewer);
    return true;
  }

  attemptOf(request: FastifyRequest, action: Attempt['action'], email: string): Attempt {
    return { action, email, client: this.#clientOf(request) };
  }

  #clientOf({ headers, socket }: FastifyRequest): string {
    // The TLS proxy appends the address of its client to `X-Forwarded-For`, so only the last address is trustworthy.
    const forwarded = this.settings.publicUrl?.startsWith('https:') ? headers['x-forwarded-for'] : undefined;
    const address = forwarded?.toString().split(',').at(-1)?.trim() || socket.remoteAddress || '';
    return clientNetwork(address);
  }

  async #openIdentity(): Promise<Identity> {
    const { openDatabase, settings, logger, now, listeningUrl } = this.options;
    const { openIdentity } = await import('./identity/identity.ts');
    const publicUrl = () => settings.publicUrl ?? listeningUrl();
    const mailer = settings.mail && (await import('./identity/mailer.ts')).createMailer(settings.mail, publicUrl);
    const onMailError = (error: unknown) => logger.error(loggedMailError(error), 'the console could not send an email');
    return openIdentity({ database: await openDatabase(), signUp: settings.signUp, mailer, now, onMailError });
  }

  async #openWebhooks(): Promise<Webhooks> {
    const { webhooks, now } = this.options;
    const [{ Endpoints }, { Thresholds }, { database }] = await Promise.all([
      import('../events/webhooks/endpoints.ts'),
      import('../events/thresholds.ts'),
      this.identity(),
    ]);
    // Opened only when an endpoint gets a secret: all other pages work even if the key cannot be used.
    const secrets = { seal: (text: string) => webhooks.openSecrets().seal(text) };
    const endpoints = new Endpoints({ database, secrets, now, rules: webhooks.rules });
    return { endpoints, thresholds: new Thresholds(database, now) };
  }
}

/** Leaves out the message of a mail server, which can contain an email address that a client has sent. */
function loggedMailError(error: unknown): object {
  const { command, code, originalCode, responseCode } = error as Readonly<Record<string, unknown>>;
  return command === undefined ? { err: error } : { command, code, originalCode, responseCode };
}
