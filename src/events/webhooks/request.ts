// Sends webhooks over HTTP. Endpoints belong to customers and are not trusted. Scrip checks the address when it
// connects, follows no redirects, and limits the duration of an attempt and the size of the response.

import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type AddressRules, addressProblem, hostOf } from './addresses.ts';
import { HostNames } from './host-names.ts';

interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface RequestResult {
  /** `delivered` if the status is 2xx. */
  readonly kind: 'delivered' | 'failed';
  /** Null if there was no HTTP response. */
  readonly status: number | null;
  /** Why the attempt failed, as a sentence; null if the webhook was delivered. */
  readonly error: string | null;
  /** The beginning of the response body. */
  readonly answer: string;
  readonly durationMs: number;
}

export type SendRequest = (request: WebhookRequest) => Promise<RequestResult>;

export interface RequestOptions {
  readonly rules: AddressRules;
  readonly userAgent: string;
  /** For the whole attempt. */
  readonly timeoutMs?: number;
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
}

export const TIMEOUT_MS = 15_000;
/** How long to wait for the response body after the status has arrived. */
const BODY_MS = 1_000;
const BODY_BYTES_MAX = 65_536;
/**
 * Node parses all interim responses that arrive together, at most 64 KiB, before it closes the connection. This takes
 * less than 20 ms.
 */
const INTERIM_MAX = 10;
const ANSWER_CHARACTERS_MAX = 1_024;
/** Less than the 5 s after which many servers close an idle connection. */
const IDLE_MS = 4_000;
const IDLE_SOCKETS_MAX = 500;

/** Thrown if webhooks must not be sent to an address. */
class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress';
}

/** Thrown if an endpoint sends interim (1xx) responses without end, which would keep the event loop busy. */
class TooManyInterim extends Error {
  override readonly name = 'TooManyInterim';
}

interface Answer {
  readonly status: number;
  readonly answer: string;
}

/** Sends webhooks, and keeps the connections open for further webhooks. */
export class WebhookRequests {
  readonly #rules: AddressRules;
  readonly #userAgent: string;
  readonly #timeoutMs: number;
  readonly #resolve: (hostname: string) => Promise<readonly string[]>;
  readonly #hostNames: HostNames;
  readonly #agents: Record<string, http.Agent>;

  constructor({ rules, userAgent, timeoutMs = TIMEOUT_MS, resolve }: RequestOptions) {
    this.#hostNames = new HostNames(rules);
    this.#rules = rules;
    this.#userAgent = userAgent;
    this.#timeoutMs = timeoutMs;
    this.#resolve = resolve ?? ((hostname) => this.#hostNames.addressesOf(hostname));
    const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_SOCKETS_MAX };
    this.#agents = { 'http:': new http.Agent(options), 'https:': new https.Agent(options) };
  }

  /** Never rejects: a failure is returned as a `RequestResult`. */
  async send(request: WebhookRequest): Promise<RequestResult> {
    const start = performance.now();
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    const signal = AbortSignal.any([timeout, request.signal]);
    const took = () => Math.round(performance.now() - start);
    try {
      const { status, answer } = await this.#attempt(request, signal);
      const isDelivered = status >= 200 && status < 300;
      const error = isDelivered ? null : statusError(status);
      return { kind: isDelivered ? 'delivered' : 'failed', status, error, answer, durationMs: took() };
    } catch (error) {
      const seconds = this.#timeoutMs / 1_000;
      const text = timeout.aborted ? `There was no response within ${seconds} seconds.` : errorSentence(error);
      return { kind: 'failed', status: null, error: text, answer: '', durationMs: took() };
    }
  }

  close(): void {
    this.#hostNames.close();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #attempt(request: WebhookRequest, signal: AbortSignal): Promise<Answer> {
    const url = new URL(request.url);
    const host = hostOf(url);
    // If the host is an IP address, Node.js does not call `lookup`, so the address is checked here.
    if (ipaddr.isValid(host)) this.#check([host], url.protocol);
    const post = () => this.#post(url, request, signal);
    return post().catch((error) => {
      // If the server closes an idle connection just as it is reused, the request is sent again.
      if (error instanceof ClosedBeforeUse && !signal.aborted) return post();
      throw error;
    });
  }

  #post(url: URL, { headers, body }: WebhookRequest, signal: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = (url.protocol === 'http:' ? http : https).request(url, {
        method: 'POST',
        agent: this.#agents[url.protocol],
        lookup: this.#lookupFor(url.protocol),
        signal,
        headers: {
          ...headers,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'user-agent': this.#userAgent,
        },
      });
      let interim = 0;
      request.on('information', () => {
        interim += 1;
        if (interim > INTERIM_MAX) request.destroy(new TooManyInterim());
      });
      let isAnswered = false;
      request.once('response', (response) => {
        isAnswered = true;
        void answerOf(response).then(resolve);
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        // After the status has arrived, an error does not change the result.
        if (isAnswered) return;
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        reject(isStale ? new ClosedBeforeUse() : error);
      });
      // The connection can close without an error, for example if the server switches protocols.
      request.once('close', () => {
        if (!isAnswered) reject(new Error('closed without a response'));
      });
      request.end(body);
    });
  }

  /** Resolves a host name. All addresses of the host must be allowed, because the connection can use any of them. */
  #lookupFor(protocol: string): LookupFunction {
    return (hostname, options, callback) => {
      this.#resolve(hostname)
        .catch(() => {
          throw new RefusedAddress('The host name of the endpoint could not be resolved.');
        })
        .then((addresses) => {
          this.#check(addresses, protocol);
          return addresses.map((address) => ({ address, family: ipaddr.parse(address).kind() === 'ipv6' ? 6 : 4 }));
        })
        .then(
          (addresses) => {
            const [first] = addresses;
            if (options.all) callback(null, addresses);
            else callback(null, first?.address ?? '', first?.family);
          },
          (error) => callback(error, ''),
        );
    };
  }

  #check(addresses: readonly string[], protocol: string): void {
    if (addresses.length === 0) throw new RefusedAddress('The host name of the endpoint has no IP address.');
    for (const address of addresses) {
      const problem = addressProblem(address, protocol, this.#rules);
      if (problem !== null) throw new RefusedAddress(problem);
    }
  }
}

class ClosedBeforeUse extends Error {
  override readonly name = 'ClosedBeforeUse';
}

/** Reads the response body until it ends, `BODY_MS` have passed, or it exceeds `BODY_BYTES_MAX`. Never rejects. */
function answerOf(response: http.IncomingMessage): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => response.destroy(), BODY_MS);
    response.on('data', (chunk: Buffer) => {
      if (bytes < 4 * ANSWER_CHARACTERS_MAX) chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) response.destroy();
    });
    response.on('error', () => {});
    response.once('close', () => {
      clearTimeout(timer);
      resolve({ status: response.statusCode ?? 0, answer: textOf(Buffer.concat(chunks)) });
    });
  });
}

/** Replaces NUL and unpaired surrogates, which PostgreSQL cannot store. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8').slice(0, ANSWER_CHARACTERS_MAX).replaceAll('\0', '\ufffd').toWellFormed();
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function statusError(status: number): string {
  if (REDIRECTS.has(status))
    return `The endpoint responded with a redirect (${status}). Scrip does not follow redirects.`;
  return `The endpoint responded with status ${status}.`;
}

/** Uses only the code of an error, because the message can contain the URL. `RefusedAddress` is the exception. */
function errorSentence(error: unknown): string {
  if (error instanceof RefusedAddress) return error.message;
  if (error instanceof TooManyInterim) return `The endpoint sent more than ${INTERIM_MAX} interim (1xx) responses.`;
  const code = (error as NodeJS.ErrnoException).code ?? 'no HTTP response';
  if (code === 'ABORT_ERR') return 'The attempt was canceled.';
  if (code === 'ECONNREFUSED') return 'The endpoint refused the connection.';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'The endpoint closed the connection without a response.';
  // The endpoint has ended the handshake, for example because it requires a client certificate.
  if (code.startsWith('ERR_SSL_')) return `The endpoint refused the TLS connection (${code}).`;
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code))
    return `The TLS certificate of the endpoint is not valid (${code}).`;
  return `The connection to the endpoint failed (${code}).`;
}
