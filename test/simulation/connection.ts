// A request and its answer as Fastify sees them, without a socket: no bytes, no parsing, nothing that the operating
// system decides. The server is the real one from its router on.

import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';

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

/** Stands in for `IncomingMessage`. */
export class ArrivingRequest extends EventEmitter {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string> = {};
  readonly rawHeaders: string[] = [];
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly complete = true;
  readonly socket = new EventEmitter();
  readonly #body: Buffer | null;
  readonly #around: (deliver: () => void) => void;

  /** @param around wraps the moment at which the body is there, in which the handler is run */
  constructor(sent: SentRequest, around: (deliver: () => void) => void) {
    super();
    this.method = sent.method;
    this.url = sent.path;
    this.#body = sent.body === null ? null : Buffer.from(sent.body);
    this.#around = around;
    this.#header('host', 'scrip');
    if (sent.authorization !== null) this.#header('authorization', sent.authorization);
    if (sent.idempotencyKey !== null) this.#header('idempotency-key', sent.idempotencyKey);
    if (this.#body === null) return;
    this.#header('content-type', 'application/json');
    this.#header('content-length', String(this.#body.length));
  }

  get headersDistinct(): Record<string, string[]> {
    const distinct: Record<string, string[]> = {};
    for (const name in this.headers) distinct[name] = [this.headers[name] as string];
    return distinct;
  }

  resume(): this {
    process.nextTick(() => {
      if (this.#body !== null) this.emit('data', this.#body);
      this.#around(() => this.emit('end'));
    });
    return this;
  }

  #header(name: string, value: string): void {
    this.headers[name] = value;
    this.rawHeaders.push(name, value);
  }
}

/** Stands in for `ServerResponse`. */
export class DepartingResponse extends Writable {
  statusCode = 200;
  headersSent = false;
  readonly #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  readonly #onReply: (reply: Reply | null) => void;

  /** @param onReply called once: with null when the answer breaks off */
  constructor(onReply: (reply: Reply | null) => void) {
    super({ decodeStrings: true });
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
    for (const name in headers) this.setHeader(name, headers[name]);
    this.headersSent = true;
    return this;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.headersSent = true;
    this.#chunks.push(chunk);
    done();
  }

  override _final(done: () => void): void {
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#onReply({ status: this.statusCode, headers: this.#headers, body: body.toString('utf8') });
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    if (!this.writableFinished) this.#onReply(null);
    done();
  }
}
