// Implements the parts of the Redis protocol that the benchmark needs.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

type Reply = string | number | null;

interface Waiting {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

export class RedisConnection {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #outgoing = '';
  #rest = '';

  static async to(port: number): Promise<RedisConnection> {
    const socket = connect(port, '127.0.0.1').setNoDelay();
    await once(socket, 'connect');
    return new RedisConnection(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')));
    socket.on('close', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error('Redis has closed the connection'));
    });
  }

  send(...parts: readonly (string | number)[]): Promise<Reply> {
    if (this.#outgoing === '') setImmediate(() => this.#flush());
    this.#outgoing += `*${parts.length}\r\n`;
    for (const part of parts) this.#outgoing += `$${Buffer.byteLength(String(part))}\r\n${part}\r\n`;
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  close(): void {
    this.#socket.destroy();
  }

  #flush(): void {
    this.#socket.write(this.#outgoing);
    this.#outgoing = '';
  }

  #read(text: string): void {
    this.#rest += text;
    let at = 0;
    for (;;) {
      const lineEnd = this.#rest.indexOf('\r\n', at);
      if (lineEnd === -1) break;
      const line = this.#rest.slice(at + 1, lineEnd);
      const kind = this.#rest[at];
      let end = lineEnd + 2;
      if (kind === '$' && line !== '-1') end += Number(line) + 2;
      if (this.#rest.length < end) break;
      const waiting = this.#waiting.shift();
      if (kind === '-') waiting?.reject(new Error(line));
      else if (kind === ':') waiting?.resolve(Number(line));
      else if (kind === '$') waiting?.resolve(line === '-1' ? null : this.#rest.slice(lineEnd + 2, end - 2));
      else waiting?.resolve(line);
      at = end;
    }
    this.#rest = this.#rest.slice(at);
  }
}
