// Replaces the requests and responses of Node.js, so that Fastify runs its real router and handlers without sockets.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';

export interface SentRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string | null;
  readonly authorization: string | null;
  readonly idempotencyKey: string | null;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type OpenSocket = EventEmitter;

export class ArrivingRequest extends EventEmitter {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string> = {};
  readonly rawHeaders: string[] = [];
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly complete = true;
  readonly socket: OpenSocket;
  readonly #body: Buffer | null;
  readonly #around: (deliver: () => void) => void;

  /** @param around called at the end of the body; must call `deliver`, which runs the request handler synchronously */
  constructor(sent: SentRequest, socket: OpenSocket, around: (deliver: () => void) => void) {
    super();
    this.socket = socket;
    this.method = sent.method;
    this.url = sent.path;
    this.#body = sent.body === null ? null : Buffer.from(sent.body);
    this.#around = around;
    // Setting headers by literal names is several times as fast as setting them by names in variables.
    const { headers, rawHeaders } = this;
    headers.host = 'scrip';
    rawHeaders.push('host', headers.host);
    if (sent.authorization !== null) {
      headers.authorization = sent.authorization;
      rawHeaders.push('authorization', headers.authorization);
    }
    if (sent.idempotencyKey !== null) {
      headers['idempotency-key'] = sent.idempotencyKey;
      rawHeaders.push('idempotency-key', headers['idempotency-key']);
    }
    if (this.#body === null) return;
    headers['content-type'] = 'application/json';
    headers['content-length'] = String(this.#body.length);
    rawHeaders.push('content-type', headers['content-type'], 'content-length', headers['content-length']);
  }

  get headersDistinct(): Record<string, string[]> {
    const distinct: Record<string, string[]> = {};
    for (const name in this.headers) distinct[name] = [this.headers[name] as string];
    return distinct;
  }

  resume(): this {
    // A promise has the same effect here as `process.nextTick`, but is much cheaper.
    void Promise.resolve().then(() => {
      if (this.#body !== null) this.emit('data', this.#body);
      this.#around(() => this.emit('end'));
    });
    return this;
  }
}

/** Unlike `ServerResponse`, this class is not a `Writable`: it delivers the body as a whole. */
export class DepartingResponse extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  readonly writable = true;
  destroyed = false;
  readonly req: ArrivingRequest;
  #headers: Record<string, string> = {};
  #body = '';
  readonly #onReply: (reply: Reply | null) => void;

  constructor(request: ArrivingRequest, onReply: (reply: Reply | null) => void) {
    super();
    this.req = request;
    this.#onReply = onReply;
  }

  setHeader(name: string, value: unknown): void {
    this.#headers[name.toLowerCase()] = String(value);
  }

  removeHeader(name: string): void {
    delete this.#headers[name.toLowerCase()];
  }

  getHeader(name: string): string | undefined {
    return this.#headers[name.toLowerCase()];
  }

  hasHeader(name: string): boolean {
    return name.toLowerCase() in this.#headers;
  }

  writeHead(status: number, headers: Record<string, unknown> = {}): this {
    this.statusCode = status;
    this.headersSent = true;
    // Fastify has already converted all header names to lower case.
    this.#headers = { ...this.#headers, ...(headers as Record<string, string>) };
    for (const name in this.#headers) {
      if (typeof this.#headers[name] !== 'string') this.#headers[name] = String(this.#headers[name]);
    }
    return this;
  }

  write(chunk: string | Buffer): boolean {
    this.headersSent = true;
    this.#body += typeof chunk === 'string' ? chunk : chunk.toString('utf8');
    return true;
  }

  end(chunk?: string | Buffer | null): this {
    assert(!this.writableEnded, 'a response ends once');
    if (chunk) this.write(chunk);
    this.writableEnded = true;
    if (this.destroyed) return this;
    this.#onReply({ status: this.statusCode, headers: this.#headers, body: this.#body });
    for (const event of ['finish', 'close'])
      if (this.listenerCount(event) > 0) process.nextTick(() => this.emit(event));
    return this;
  }

  destroy(): this {
    if (this.destroyed || this.writableEnded) return this;
    this.destroyed = true;
    this.#onReply(null);
    process.nextTick(() => this.emit('close'));
    return this;
  }
}
