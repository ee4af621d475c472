// Something that looks like Scrip from afar and behaves as the network, proxies and a failing service do: it is told what
// to do with each request in turn. It adds credits once for each idempotency key, and keeps what it was sent.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  /** Whether the client gave up before it was answered. */
  readonly abandoned: Promise<boolean>;
}

/** What happens in place of an answer, once a write has had its effect. */
export type Behaviour = (response: ServerResponse, fields: Readonly<Record<string, unknown>>) => void;

export const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

export const answers: Behaviour = (response, fields) => sendJson(response, 200, fields);
export const dropsConnection: Behaviour = (response) => void response.socket?.destroy();
export const breaksOff: Behaviour = (response, fields) => {
  const text = JSON.stringify(fields);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
  response.write(text.slice(0, 10), () => response.socket?.destroy());
};
/** Until the client goes. */
export const staysSilent: Behaviour = () => {};
export const sendsHeadersOnly: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
  response.flushHeaders();
};

export function says(status: number, text: string, headers: Record<string, string> = {}): Behaviour {
  return (response) => void response.writeHead(status, headers).end(text);
}

export function refuses(status: number, error: string, extras: object = {}, headers = {}): Behaviour {
  const problem = {
    type: `/problems/${error}`,
    title: 'No',
    status,
    error,
    request_id: 'r-1',
    detail: 'Why.',
    ...extras,
  };
  return (response) => sendJson(response, status, problem, { 'content-type': 'application/problem+json', ...headers });
}

function sendJson(response: ServerResponse, status: number, fields: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(fields));
}

export class HostileScrip {
  readonly received: Received[] = [];
  /** Keys under which it has added credits. */
  readonly effects: string[] = [];
  #behaviours: readonly Behaviour[] = [];
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

  /** From now on, the first request meets the first behaviour, and so on; those beyond the list meet the last. */
  behave(...behaviours: readonly Behaviour[]): void {
    this.#behaviours = behaviours;
    this.received.length = 0;
    this.effects.length = 0;
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
    const behaviour = this.#behaviours[Math.min(this.received.length, this.#behaviours.length - 1)] ?? answers;
    const abandoned = once(response, 'close').then(() => !response.writableFinished);
    const place = this.received.push({ method, url, headers, body: null, abandoned }) - 1;
    const body = method === 'POST' ? await json(request) : null;
    this.received[place] = { method, url, headers, body, abandoned };
    const key = headers['idempotency-key'] as string | undefined;
    if (key !== undefined && !this.effects.includes(key)) this.effects.push(key);
    behaviour(response, (body ?? { end_user_id: END_USER }) as Record<string, unknown>);
  }
}
