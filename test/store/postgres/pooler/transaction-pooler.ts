// A pooler in transaction mode, like PgBouncer: each transaction may use any free connection to the server. The pooler
// implements only the part of the PostgreSQL protocol that the tests need. The protocol is described at
// https://www.postgresql.org/docs/current/protocol-flow.html.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket, connect as to } from 'node:net';

const SSL_REQUEST = 80_877_103;
const PROTOCOL = 196_608;
const IDLE = 'I';

/** The server answers a simple query, and the Sync after an extended query, with ReadyForQuery. */
const ASKS_FOR_READY = new Set(['Q', 'S']);
const TERMINATE = 'X';
const READY_FOR_QUERY = 'Z';

/** A message is a letter, a length that includes the length field itself, and a body. */
class MessageReader {
  #bytes = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<{ type: string; bytes: Buffer }> {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    while (this.#bytes.length >= 5) {
      const length = 1 + this.#bytes.readInt32BE(1);
      if (this.#bytes.length < length) return;
      const bytes = this.#bytes.subarray(0, length);
      this.#bytes = this.#bytes.subarray(length);
      yield { type: String.fromCharCode(bytes[0] as number), bytes };
    }
  }
}

interface Backend {
  readonly socket: Socket;
  client: Client | null;
}

interface Client {
  readonly socket: Socket;
  readonly database: Database;
  backend: Backend | null;
  readonly servedBy: Set<Backend>;
  waiting: Buffer[];
  unanswered: number;
  isUnsynced: boolean;
}

interface Database {
  readonly startup: Buffer;
  readonly backends: Set<Backend>;
  readonly free: Backend[];
  readonly queue: Client[];
}

export class TransactionPooler {
  transactions = 0;
  spread = 0;
  readonly #server: Server;
  readonly #target: number;
  readonly #backendsMax: number;
  readonly #databases = new Map<string, Promise<Database>>();
  readonly #clients = new Set<Socket>();

  static async to(target: number, backendsMax: number): Promise<TransactionPooler> {
    const pooler = new TransactionPooler(target, backendsMax);
    pooler.#server.listen(0, '127.0.0.1');
    await once(pooler.#server, 'listening');
    return pooler;
  }

  private constructor(target: number, backendsMax: number) {
    this.#target = target;
    this.#backendsMax = backendsMax;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  url(direct: string): string {
    return Object.assign(new URL(direct), { port: String((this.#server.address() as AddressInfo).port) }).href;
  }

  /** Closes all connections to a database, so that the database can be dropped. */
  async forget(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    const database = await this.#databases.get(name);
    this.#databases.delete(name);
    await Promise.all([...(database?.backends ?? [])].map(({ socket }) => closed(socket)));
  }

  async close(): Promise<void> {
    for (const socket of this.#clients) socket.destroy();
    await Promise.all([...this.#databases.keys()].map((name) => this.forget(`postgres://_/${name}`)));
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    this.#clients.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#clients.delete(socket));
    socket.once('data', (startup: Buffer) => {
      if (startup.readInt32BE(4) !== SSL_REQUEST) return void this.#start(socket, startup);
      socket.write('N');
      socket.once('data', (startup: Buffer) => void this.#start(socket, startup));
    });
  }

  /** Does not forward the startup message, so that the client's session settings have no effect on the server. */
  async #start(socket: Socket, startup: Buffer): Promise<void> {
    assert.equal(startup.readInt32BE(4), PROTOCOL);
    const parameters = startup.subarray(8).toString().split('\0');
    const parameter = (name: string) => parameters[parameters.indexOf(name) + 1] as string;
    const client: Client = {
      socket,
      database: await this.#databaseOf(parameter('user'), parameter('database')),
      backend: null,
      servedBy: new Set(),
      waiting: [],
      unanswered: 0,
      isUnsynced: false,
    };
    const reader = new MessageReader();
    socket.on('data', (chunk: Buffer) => {
      for (const { type, bytes } of reader.read(chunk)) this.#take(client, type, bytes);
    });
    socket.on('close', () => this.#leave(client));
    const key = Buffer.alloc(8);
    socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), message('Z', Buffer.from(IDLE))]));
  }

  #databaseOf(user: string, name: string): Promise<Database> {
    const opened = this.#databases.get(name) ?? this.#open(user, name);
    this.#databases.set(name, opened);
    return opened;
  }

  async #open(user: string, name: string): Promise<Database> {
    const text = Buffer.from(`\0\x03\0\0user\0${user}\0database\0${name}\0\0`);
    const startup = Buffer.concat([int32(text.length + 4), text]);
    const database: Database = { startup, backends: new Set(), free: [], queue: [] };
    await Promise.all(Array.from({ length: this.#backendsMax }, () => this.#connect(database)));
    return database;
  }

  async #connect(database: Database): Promise<void> {
    const socket = to({ port: this.#target, host: '127.0.0.1', noDelay: true });
    const backend: Backend = { socket, client: null };
    database.backends.add(backend);
    const reader = new MessageReader();
    const ready = Promise.withResolvers<void>();
    let isReady = false;
    socket.on('error', ready.reject);
    socket.on('data', (chunk: Buffer) => {
      for (const { type, bytes } of reader.read(chunk)) {
        if (isReady) this.#answer(database, backend, type, bytes);
        else if (type === READY_FOR_QUERY) ready.resolve();
        isReady ||= type === READY_FOR_QUERY;
      }
    });
    socket.write(database.startup);
    await ready.promise;
    this.#free(database, backend);
  }

  #take(client: Client, type: string, bytes: Buffer): void {
    if (type === TERMINATE) return void client.socket.end();
    client.isUnsynced = !ASKS_FOR_READY.has(type);
    if (!client.isUnsynced) client.unanswered += 1;
    if (client.backend) return void client.backend.socket.write(bytes);
    client.waiting.push(bytes);
    if (!client.database.queue.includes(client)) client.database.queue.push(client);
    this.#assign(client.database);
  }

  #assign(database: Database): void {
    while (database.free.length > 0 && database.queue.length > 0) {
      const backend = database.free.shift() as Backend;
      const client = database.queue.shift() as Client;
      backend.client = client;
      client.backend = backend;
      this.transactions += 1;
      client.servedBy.add(backend);
      this.spread = Math.max(this.spread, client.servedBy.size);
      backend.socket.write(Buffer.concat(client.waiting));
      client.waiting = [];
    }
  }

  #answer(database: Database, backend: Backend, type: string, bytes: Buffer): void {
    const { client } = backend;
    if (client === null) return;
    client.socket.write(bytes);
    if (type !== READY_FOR_QUERY) return;
    client.unanswered -= 1;
    const isOver = client.unanswered === 0 && !client.isUnsynced && bytes.toString('latin1', 5) === IDLE;
    if (!isOver) return;
    client.backend = null;
    this.#free(database, backend);
  }

  #free(database: Database, backend: Backend): void {
    backend.client = null;
    database.free.push(backend);
    this.#assign(database);
  }

  /**
   * If the client has an open transaction, replaces the connection to the server, so that the server rolls the
   * transaction back.
   */
  #leave(client: Client): void {
    const { database, backend } = client;
    if (database.queue.includes(client)) database.queue.splice(database.queue.indexOf(client), 1);
    if (backend === null) return;
    backend.client = null;
    backend.socket.removeAllListeners('data').destroy();
    database.backends.delete(backend);
    void this.#connect(database).catch(() => {});
  }
}

async function closed(socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  socket.end(message(TERMINATE, Buffer.alloc(0)));
  await once(socket, 'close');
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
