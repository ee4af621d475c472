// Who reads a list, and when the next page of it is made: once the answer is the one that goes out on its connection, and
// it is its turn. Of ten lists that were pipelined, nine hold no more than how they begin.

import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CANCELED } from '../batching/group-commit.ts';
import type { ListTurns, PageReader, PageTurns } from './page-turns.ts';
import type { InTurn } from './transaction-list.ts';
import type { WorkInFlight } from './work-in-flight.ts';

export class ListReader implements PageReader, InTurn {
  readonly account: number;
  readonly #turns: ListTurns;
  readonly #work: WorkInFlight;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(turns: ListTurns, work: WorkInFlight, request: FastifyRequest, reply: FastifyReply) {
    this.account = request.caller.account;
    this.#turns = turns;
    this.#work = work;
    this.#request = request;
    this.#reply = reply;
  }

  get isDisconnected(): boolean {
    return this.#request.raw.socket.destroyed;
  }

  /** @throws CANCELED when its client has gone, and what `make` throws, as does what follows */
  begin<Page>(make: () => Promise<Page>): Promise<Page> {
    return this.#take(this.#turns.beginnings, make);
  }

  /** Until the answer has begun, its request is not one that anybody is busy with meanwhile. */
  async goOn<Page>(make: () => Promise<Page>): Promise<Page> {
    const { holder } = this.#request;
    if (holder !== null) this.#work.stepAside(holder);
    try {
      await this.#answering();
      return await this.#take(this.#turns.pages, make);
    } finally {
      if (holder !== null) this.#work.stepBack(holder);
    }
  }

  async #take<Page>(turns: PageTurns, make: () => Promise<Page>): Promise<Page> {
    const page = await turns.take(this, make);
    if (page === null) throw CANCELED;
    return page;
  }

  /** Counts a stream as work for as long as the client takes to read it, which goes on after its headers are sent. */
  stream(stream: Readable): Readable {
    const { holder, log } = this.#request;
    assert(holder, 'its request is still counted');
    this.#work.beginStream(holder);
    stream.once('error', (error) => {
      if (!this.isDisconnected) log.error({ err: error }, 'a list broke off');
    });
    stream.once('close', () => this.#work.endStream(holder));
    return stream;
  }

  /** Node gives an answer its socket when those before it on the connection are sent. */
  async #answering(): Promise<void> {
    const response = this.#reply.raw;
    if (response.socket !== null || this.isDisconnected) return;
    await new Promise((resolve) => response.once('socket', resolve).once('close', resolve));
  }
}
