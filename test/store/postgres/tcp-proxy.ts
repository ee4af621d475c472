// A proxy between the service and its database that can cut connections, delay data, or swallow all data.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket, connect as to } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * With `pass, then …`, the server gets the bytes, but its reply is lost. After a `swallow`, the connection stays open
 * but carries no more data.
 */
export type Verdict = 'pass' | 'cut' | 'pass, then cut' | 'swallow' | 'pass, then swallow';

interface Link {
  readonly service: Socket;
  readonly server: Socket;
  isSwallowing: boolean;
}

/**
 * A batch sends its BEGIN and its COMMIT in different chunks, so a chunk in which a COMMIT follows a BEGIN is not from
 * a batch. After the COMMIT of a batch, the same chunk can contain the BEGIN of the next batch.
 */
const COMMIT = /(COMMIT|scrip_commit_\d+)\0/;
const BEGIN = /BEGIN\W|scrip_begin_\d+\0/;

export function isCommit(bytes: Buffer): boolean {
  const text = bytes.toString('latin1');
  const at = text.search(COMMIT);
  return at !== -1 && !BEGIN.test(text.slice(0, at));
}

export class TcpProxy {
  target: number;
  delayMs = 0;
  swallowsNew = false;
  rule: (bytes: Buffer) => Verdict = () => 'pass';
  onAnswer: (bytes: Buffer) => void = () => {};
  readonly #server: Server;
  readonly #links = new Set<Link>();

  static async to(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer({ noDelay: true }, (service) => this.#connect(service));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#links.size;
  }

  url(direct: string): string {
    return Object.assign(new URL(direct), { port: String(this.port) }).href;
  }

  cutAll(): void {
    for (const link of this.#links) cut(link);
  }

  cutOne(): boolean {
    const links = [...this.#links];
    const link = links[Math.floor(Math.random() * links.length)];
    if (link) cut(link);
    return link !== undefined;
  }

  swallowAll(): void {
    this.swallowsNew = true;
    for (const link of this.#links) link.isSwallowing = true;
  }

  /** Affects only new connections: existing connections that swallow all data continue to do so. */
  heal(): void {
    this.swallowsNew = false;
  }

  onNextCommit(verdict: Verdict): Promise<void> {
    return new Promise((resolve) => {
      this.rule = (bytes) => {
        if (!isCommit(bytes)) return 'pass';
        this.rule = () => 'pass';
        resolve();
        return verdict;
      };
    });
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cutAll();
    await once(this.#server, 'close');
  }

  #connect(service: Socket): void {
    const server = to({ port: this.target, host: '127.0.0.1', noDelay: true });
    const link: Link = { service, server, isSwallowing: this.swallowsNew };
    this.#links.add(link);
    service.on('data', (bytes: Buffer) => void this.#forward(link, bytes));
    server.on('data', (bytes: Buffer) => void this.#answer(link, bytes));
    for (const socket of [service, server]) {
      socket.on('error', () => {});
      socket.on('close', () => {
        if (link.isSwallowing) return;
        this.#links.delete(link);
        cut(link);
      });
    }
  }

  async #forward(link: Link, bytes: Buffer): Promise<void> {
    if (link.isSwallowing) return;
    const verdict = this.rule(bytes);
    if (verdict === 'cut') return cut(link);
    if (verdict === 'swallow' || verdict === 'pass, then swallow') link.isSwallowing = true;
    if (verdict === 'swallow') return;
    if (verdict === 'pass, then cut') {
      link.server.removeAllListeners('data').resume().end(bytes);
      link.service.resetAndDestroy();
      return;
    }
    if (this.delayMs > 0) await sleep(this.delayMs);
    link.server.write(bytes);
  }

  async #answer(link: Link, bytes: Buffer): Promise<void> {
    this.onAnswer(bytes);
    if (this.delayMs > 0) await sleep(this.delayMs);
    if (!link.isSwallowing) link.service.write(bytes);
  }
}

function cut({ service, server }: Link): void {
  service.resetAndDestroy();
  server.destroy();
}
