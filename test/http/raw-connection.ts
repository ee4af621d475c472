// Sends bytes that an HTTP client would not send, such as half a request.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Body, Scrip } from './running-service.ts';

export interface RawReply {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
  readonly body: Body;
}

/** On a busy machine, responses on hundreds of connections can take 20 s. */
const PATIENCE_MS = 60_000;

export class RawConnection {
  readonly socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #arrived: Buffer[] = [];
  #wake: (() => void) | null = null;
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#arrived.push(chunk);
      this.#wake?.();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake?.();
    });
  }

  static async open(scrip: Scrip): Promise<RawConnection> {
    const socket = connect(scrip.port, '127.0.0.1');
    scrip.atStop(() => socket.destroy());
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Returns null if the connection ends before the response is complete. */
  async answer(): Promise<RawReply | null> {
    for (;;) {
      const head = this.#unread.indexOf('\r\n\r\n');
      if (head !== -1) {
        const reply = headOf(this.#unread.toString('latin1', 0, head));
        const end = head + 4 + Number(reply.headers.get('content-length') ?? 0);
        if (this.#unread.length >= end) {
          const text = this.#unread.toString('utf8', head + 4, end);
          this.#unread = this.#unread.subarray(end);
          const isJson = reply.headers.get('content-type')?.includes('json') && text !== '';
          return { ...reply, text, body: isJson ? JSON.parse(text) : {} };
        }
      }
      if (!(await this.#more())) return null;
    }
  }

  async answers(count: number): Promise<RawReply[]> {
    const replies: RawReply[] = [];
    while (replies.length < count) {
      const reply = await this.answer();
      assert(reply, `the connection ended after ${replies.length} of ${count} responses`);
      replies.push(reply);
    }
    return replies;
  }

  async untilClosed(): Promise<string> {
    const pieces = [this.#unread];
    do pieces.push(...this.#arrived.splice(0));
    while (await this.#arrival());
    this.#unread = Buffer.concat(pieces);
    return this.#unread.toString();
  }

  async #more(): Promise<boolean> {
    if (!(await this.#arrival())) return false;
    this.#unread = Buffer.concat([this.#unread, ...this.#arrived.splice(0)]);
    return true;
  }

  async #arrival(): Promise<boolean> {
    while (this.#arrived.length === 0) {
      if (this.isClosed) return false;
      await new Promise<void>((resolve, reject) => {
        const impatience = setTimeout(() => reject(new Error(`no response within ${PATIENCE_MS} ms`)), PATIENCE_MS);
        this.#wake = () => {
          clearTimeout(impatience);
          resolve();
        };
      });
    }
    return true;
  }
}

export async function sendRaw(scrip: Scrip, bytes: string | Uint8Array): Promise<RawReply> {
  const connection = await RawConnection.open(scrip);
  connection.send(bytes);
  const reply = await connection.answer();
  connection.socket.destroy();
  assert(reply, 'the connection closed without a response');
  return reply;
}

export function postText(scrip: Scrip, path: string, fields: unknown): string {
  const body = typeof fields === 'string' ? fields : JSON.stringify(fields);
  return `POST ${path} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function headOf(text: string): { status: number; headers: Map<string, string> } {
  const [first = '', ...lines] = text.split('\r\n');
  const status = Number(first.split(' ')[1]);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status, headers };
}
