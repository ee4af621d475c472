// A server that imitates a failing Scrip, a proxy or an unreliable network. The server applies a write once per
// idempotency key and records the requests.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly canceled: Promise<boolean>;
}

/** How the server responds. If the request is a write, the server applies it first. */
export type Behavior = (response: ServerResponse, fields: Readonly<Record<string, unknown>>) => void;

export const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

export const responds: Behavior = (response, fields) => sendJson(response, 200, fields);
export const dropsConnection: Behavior = (response) => void response.socket?.destroy();
export const sendsHalf: Behavior = (response, fields) => {
  const text = JSON.stringify(fields);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
  response.write(text.slice(0, 10), () => response.socket?.destroy());
};
export const staysSilent: Behavior = () => {};
export const sendsHeadersOnly: Behavior = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
  response.flushHeaders();
};

export function sends(status: number, text: string, headers: Record<string, string> = {}): Behavior {
  return (response) => void response.writeHead(status, headers).end(text);
}

export function refuses(status: number, error: string, extras: object = {}, headers = {}): Behavior {
  const problem = {
    type: `/problems/${error}`,
    title: 'Refused',
    status,
    error,
    request_id: 'r-1',
    detail: 'The reason.',
    ...extras,
  };
  return (response) => sendJson(response, status, problem, { 'content-type': 'application/problem+json', ...headers });
}

function sendJson(response: ServerResponse, status: number, fields: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(fields));
}

export class HostileScrip {
  readonly received: Received[] = [];
  readonly applied: string[] = [];
  #behaviors: readonly Behavior[] = [];
  readonly #server = createServer((request, response) => void this.#receive(request, response));

  static async start(): Promise<HostileScrip> {
    const hostile = new HostileScrip();
    hostile.#server.listen(0, '127.0.0.1');
    await once(hostile.#server, 'listening');
    return hostile;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * The first request gets the first behavior, the second request gets the second, and so on. All further requests get
   * the last behavior.
   */
  behave(...behaviors: readonly Behavior[]): void {
    this.#behaviors = behaviors;
    this.received.length = 0;
    this.applied.length = 0;
  }

  connections(): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const behavior = this.#behaviors[Math.min(this.received.length, this.#behaviors.length - 1)] ?? responds;
    const canceled = once(response, 'close').then(() => !response.writableFinished);
    const index = this.received.push({ method, url, headers, body: null, canceled }) - 1;
    const body = method === 'POST' ? await json(request) : null;
    this.received[index] = { method, url, headers, body, canceled };
    const key = headers['idempotency-key'] as string | undefined;
    if (key !== undefined && !this.applied.includes(key)) this.applied.push(key);
    behavior(response, (body ?? { end_user_id: END_USER }) as Record<string, unknown>);
  }
}
