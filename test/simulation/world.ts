// The world of one seed: clients, a network, processes, a disk and a clock, with all their faults. After the last
// operation there are no more faults, and all requests and background work must finish.
//
//   clients ──▶ network ──▶ slots (HTTP, group commit, background jobs) ──▶ store ──▶ disk
//                               every response, every commit ──▶ auditor

import { apiKeySecret, hashOf, SECRET_BYTES } from '../../src/accounts/api-key.ts';
import { DAY_MS, HOUR_MS } from '../../src/ledger/instant.ts';
import type { IdempotencyRetention, Lanes } from '../../src/store/ledger-store.ts';
import type { ModelUser } from '../model/model-types.ts';
import { type Attempt, Auditor } from './auditor.ts';
import { Chance } from './chance.ts';
import { Client, type Heard } from './client.ts';
import type { Reply } from './connection.ts';
import { BROKEN_STORES, type Control } from './controls.ts';
import { Disk } from './disk.ts';
import { type Fault, Faults } from './faults.ts';
import { BEGINNINGS, MachineClock } from './machine-clock.ts';
import { KINDS, LAST_READS, type Operation, Operations, type Secrets } from './operation.ts';
import { AT_REST } from './predicted-reads.ts';
import { Process, type Routes, Slot } from './process.ts';
import { EVENTS_EVERY_SEEDS } from './simulated-events.ts';
import type { StoreOptions } from './simulated-store.ts';
import { Trace } from './trace.ts';
import { VirtualTime } from './virtual-time.ts';

export interface SeedOptions {
  readonly seed: number;
  readonly operations: number;
  readonly control: Control | null;
  readonly onTrace: ((line: string) => void) | null;
}

export interface SeedResult {
  readonly seed: number;
  readonly violation: string | null;
  readonly operations: number;
  readonly requests: number;
  readonly days: number;
  readonly faults: ReadonlyMap<Fault, number>;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly traceHash: string;
  readonly traceTail: readonly string[];
}

const SLOTS_MAX = 3;

const BEFORE_ID = '"request_id":"';
const CLOCK_LOOK_MS = 200;
const CRASH_LOOK_MS = 500;
const RESTART_MS = 300;
/** The time in which all remaining work must finish: longer than all stalls and the retries after them. */
const REST_MS_MAX = 120_000;
const REST_LOOK_MS = 500;
const ABSENCES_MS = [0, HOUR_MS, 2 * DAY_MS, 40 * DAY_MS, 40 * DAY_MS, 400 * DAY_MS];
const LIFE_MS_MAX = 4 * 3_600_000;

export class World {
  readonly #options: SeedOptions;
  readonly #chance: Chance;
  readonly #time: VirtualTime;
  readonly #faults: Faults;
  readonly #clock: MachineClock;
  readonly #disk: Disk;
  readonly #auditor: Auditor;
  readonly #routes: Routes;
  readonly #slots: readonly Slot[];
  readonly #users: readonly ModelUser[];
  readonly #storeOptions: Omit<StoreOptions, 'crash'>;
  readonly #retention: IdempotencyRetention;
  readonly #clients: Client[] = [];
  #issued = 0;
  readonly #trace: Trace;
  /** Request IDs differ between runs, so the trace shows a number in place of each request ID. */
  readonly #requestIds = new Map<string, string>();

  constructor(routes: Routes, options: SeedOptions) {
    this.#options = options;
    this.#trace = new Trace(options.onTrace);
    this.#chance = new Chance(options.seed);
    const chance = this.#chance;
    this.#time = new VirtualTime(() => chance.share());
    this.#routes = routes;
    this.#slots = Array.from({ length: chance.between(1, SLOTS_MAX) }, () => new Slot());
    this.#faults = new Faults(chance);
    this.#clock = new MachineClock(this.#time, chance.pick(BEGINNINGS), (instant) =>
      this.#note(`the clock jumps to ${instant}`),
    );
    this.#disk = new Disk(
      () => this.#clock.now(),
      () => chance.tail(),
      BROKEN_STORES[options.control ?? 'nothing'].needsEvents || options.seed % EVENTS_EVERY_SEEDS === 0,
    );
    const retentions = [HOUR_MS, DAY_MS, 30 * DAY_MS];
    this.#retention = { grantsMs: chance.pick(retentions), othersMs: chance.pick(retentions) };
    this.#auditor = new Auditor(this.#retention, (line) => this.#note(line));
    this.#users = Array.from({ length: chance.between(2, 16) }, (_, index) => ({
      account: 1 + (index % 2),
      endUser: `5f0c6f7e-0000-4000-8000-00000000000${index >> 1}`,
    }));
    this.#storeOptions = {
      time: this.#time,
      chance,
      faults: this.#faults,
      witness: this.#auditor,
      lanes: lanesOf(chance),
      eventsMax: chance.pick([1, 5, 1_000]),
      pageMax: chance.pick([25, 100, 500]),
      loadsAllHolds: chance.happens(0.5),
      passTimeOf: (names) => this.#clock.passTimeOf(names, this.#disk),
    };
  }

  async run(): Promise<SeedResult> {
    const giveBack = this.#time.takeOver(this.#disk.wall);
    this.#routes.time = this.#time;
    const onRejection = (error: unknown) => this.#auditor.fail(`unhandled rejection: ${String(error)}`);
    process.on('unhandledRejection', onRejection);
    try {
      await this.#live();
    } catch (error) {
      this.#auditor.fail(`the simulation failed: ${(error as Error).stack}`);
    } finally {
      for (const slot of this.#slots) if (slot.process !== null) slot.crash();
      // Let interrupted requests end now, so that they cannot affect the next seed.
      await new Promise<void>((resolve) => process.nextTick(() => queueMicrotask(resolve)));
      giveBack();
      this.#routes.time = null;
      process.off('unhandledRejection', onRejection);
    }
    return this.#result();
  }

  async #live(): Promise<void> {
    for (const slot of this.#slots) this.#start(slot);
    this.#openForBusiness();
    this.#time.every(CLOCK_LOOK_MS, () => this.#clock.mayJump(this.#disk, this.#chance, this.#faults));
    this.#time.every(CRASH_LOOK_MS, () => this.#mayCrash());
    const isOver = () => this.violation !== null;
    this.#time.after(LIFE_MS_MAX, () => this.#auditor.fail(`clients make no progress: ${this.#unfinished()}`));
    await this.#time.passUntil(() => isOver() || this.#faults.isOver);
    // After the jump, clients begin no new operations, so the background jobs must store the due events.
    this.#clock.jump(this.#disk, this.#disk.peek() + this.#chance.pick(ABSENCES_MS));
    const restBy = this.#time.now + REST_MS_MAX;
    let isAtRest = false;
    this.#time.every(REST_LOOK_MS, () => {
      isAtRest = this.#unfinished() === null;
      if (!isAtRest && this.#time.now > restBy) this.#auditor.fail(`work remains unfinished: ${this.#unfinished()}`);
    });
    await this.#time.passUntil(() => isOver() || isAtRest);
    await this.#readAll(isOver);
    await this.#stopAll(isOver);
    if (!isOver()) this.#auditor.judgeDisk(this.#disk);
  }

  get violation(): string | null {
    return this.#auditor.violation;
  }

  #openForBusiness(): void {
    const chance = this.#chance;
    const kinds = chance.half(KINDS);
    const drawn = kinds.includes('add') || kinds.includes('start-cycle') ? kinds : (['add', ...kinds] as const);
    const count = chance.between(2, 16);
    for (let number = 1; number <= count; number++) {
      const secrets = this.#makeKeys(number);
      const account = 1 + (number % 2);
      const users = this.#users.filter((user) => user.account === account);
      const operations = new Operations(chance, drawn, users, {
        ledgerOf: (user) => this.#auditor.ledgerOf(user),
        now: () => this.#disk.peek(),
      });
      const client = new Client(number, {
        time: this.#time,
        chance,
        nextOperation: () => this.#nextOperation(operations, secrets),
        attempt: (operation) => this.#auditor.attempt(operation),
        send: (attempt, hear) => this.#send(attempt, hear),
      });
      this.#clients.push(client);
    }
  }

  #makeKeys(number: number): Secrets {
    const account = 1 + (number % 2);
    const make = (scope: 'read' | 'write') => apiKeySecret(scope, this.#chance.bytes(SECRET_BYTES));
    const [write, read, unknown] = [make('write'), make('read'), make('write')];
    this.#disk.apiKeys.set(hashOf(write), { id: 2 * number, account, scope: 'write' });
    this.#disk.apiKeys.set(hashOf(read), { id: 2 * number + 1, account, scope: 'read' });
    const headers = { write: `Bearer ${write}`, read: `Bearer ${read}`, unknown: `Bearer ${unknown}` };
    return { ...headers, actor: `key:${2 * number}` };
  }

  #nextOperation(operations: Operations, secrets: Secrets): Operation | null {
    if (this.#issued === this.#options.operations) return null;
    this.#issued += 1;
    if (this.#issued === this.#options.operations) this.#faults.end();
    const operation = operations.draw(this.#issued, secrets);
    this.#note(
      `operation ${operation.number}: ${operation.sent.path} ${operation.sent.body} of ${operation.user.endUser}`,
    );
    return operation;
  }

  #send(attempt: Attempt, hear: (heard: Heard) => void): void {
    const { chance, faults, time } = { chance: this.#chance, faults: this.#faults, time: this.#time };
    if (faults.strikes('a request is lost')) return void time.after(chance.delay(100), () => hear('cut'), null);
    const late = faults.strikes('a request is late') ? chance.delay(2_000) : 0;
    time.after(chance.delay(1) + late, () => this.#arrive(attempt, hear), null);
    const { idempotencyKey, method } = attempt.operation.sent;
    const mayRepeat = idempotencyKey !== null || method === 'GET';
    if (mayRepeat && faults.strikes('a request arrives twice')) {
      const again = this.#auditor.attempt(attempt.operation);
      time.after(chance.delay(1_000), () => this.#arrive(again, () => {}), null);
    }
    if (faults.strikes('a client disconnects')) time.after(chance.delay(3), () => hear('cut'), null);
  }

  #arrive(attempt: Attempt, hear: (heard: Heard) => void): void {
    const { chance, faults, time } = { chance: this.#chance, faults: this.#faults, time: this.#time };
    const slot = chance.pick(this.#slots);
    const process = slot.process;
    if (process === null) return void time.after(chance.delay(1), () => hear('refused'), null);
    time.owner = process;
    this.#cuts.set(attempt, { process, cut: () => hear('cut') });
    this.#routes.handle(
      attempt.operation.sent,
      (command) => this.#auditor.submitted(command, attempt),
      (reply) => {
        this.#cuts.delete(attempt);
        if (reply === null) return void time.after(chance.delay(1), () => hear('cut'), null);
        this.#auditor.judge(attempt, reply);
        this.#noteReply(attempt, reply);
        if (faults.strikes('a reply is lost')) return void time.after(chance.delay(100), () => hear('cut'), null);
        const late = faults.strikes('a reply is late') ? chance.delay(2_000) : 0;
        time.after(chance.delay(1) + late, () => hear(reply), null);
      },
    );
  }

  readonly #cuts = new Map<Attempt, { process: Process; cut: () => void }>();

  #start(slot: Slot): void {
    const process = new Process();
    slot.process = process;
    const options = { ...this.#storeOptions, crash: () => this.#crash(slot, process) };
    const store = new BROKEN_STORES[this.#options.control ?? 'nothing'](this.#disk, process, options);
    const owner = this.#time.owner;
    this.#time.owner = process;
    process.start({
      store,
      retention: this.#retention,
      onTrouble: (what) => this.#note(what),
    });
    this.#time.owner = owner;
  }

  #mayCrash(): void {
    for (const slot of this.#slots) {
      if (slot.process !== null && this.#faults.strikes('a process crashes')) this.#crash(slot, slot.process);
    }
  }

  #crash(slot: Slot, process: Process): void {
    if (slot.process !== process) return;
    this.#note(`process ${this.#slots.indexOf(slot)} crashes`);
    slot.crash();
    for (const [attempt, served] of this.#cuts) {
      if (served.process !== process) continue;
      this.#cuts.delete(attempt);
      this.#time.after(this.#chance.delay(2), served.cut, null);
    }
    this.#time.after(this.#chance.delay(50), () => this.#disk.unlockAllOf(process), null);
    this.#time.after(this.#chance.delay(RESTART_MS), () => this.#start(slot), null);
  }

  #unfinished(): string | null {
    const waiting = this.#clients.filter(({ isDone }) => !isDone);
    if (waiting.length > 0) return `${waiting.length} clients wait for a response`;
    if (this.#cuts.size > 0) return `${this.#cuts.size} requests have no response`;
    for (const { process } of this.#slots) {
      if (process === null) return 'a process has not restarted';
      if (process.commit.queued > 0) return `${process.commit.queued} commands are queued`;
    }
    if (!this.#disk.isQuiet) return 'rows are locked';
    if (this.#disk.due(1).length > 0) return 'a renewal or a lapse is due';
    if (this.#disk.hasExpiredRecords(this.#retention)) return 'an idempotency record has expired';
    if (this.#disk.consumed < this.#disk.feed.length) return 'a part of the feed is not consumed';
    if (!this.#disk.hasAllEvents) return 'some events are not stored';
    return null;
  }

  async #readAll(isOver: () => boolean): Promise<void> {
    const secrets = [this.#makeKeys(100), this.#makeKeys(101)];
    let open = 0;
    for (const user of this.#users) {
      for (const { kind, path, filter } of LAST_READS) {
        const sent = {
          method: 'GET',
          path: `${path}end_user_id=${user.endUser}`,
          body: null,
          authorization: secrets[user.account - 1]?.read ?? null,
          idempotencyKey: null,
        } as const;
        const asked = {
          number: AT_REST,
          kind,
          user,
          command: null,
          sent,
          refusedWith: null,
          ...(filter && { filter }),
        };
        open += 1;
        const hear = (heard: Heard) => {
          open -= 1;
          if (typeof heard === 'string' || heard.status !== 200)
            this.#auditor.fail('a read failed although there are no more faults');
        };
        this.#time.after(0, () => this.#arrive(this.#auditor.attempt(asked), hear), null);
      }
    }
    await this.#time.passUntil(() => isOver() || open === 0);
  }

  async #stopAll(isOver: () => boolean): Promise<void> {
    let running = this.#slots.length;
    const by = this.#time.now + REST_MS_MAX;
    for (const { process } of this.#slots) {
      if (process === null) continue;
      this.#time.after(0, () => void process.stop().then(() => (running -= 1)), process);
    }
    this.#time.after(REST_MS_MAX + 1, () => {}, null);
    await this.#time.passUntil(() => isOver() || running === 0 || this.#time.now > by);
    if (running > 0 && !isOver()) this.#auditor.fail('an idle process does not stop');
  }

  #noteReply({ operation }: Attempt, { status, headers, body }: Reply): void {
    const known = status === 200 ? body : this.#withKnownId(body);
    this.#note(`response to ${operation.number}: ${status} ${headers['idempotent-replayed'] ?? ''} `, known);
  }

  #withKnownId(body: string): string {
    const begin = body.indexOf(BEFORE_ID) + BEFORE_ID.length;
    const end = body.indexOf('"', begin);
    const id = body.slice(begin, end);
    let name = this.#requestIds.get(id);
    if (name === undefined) {
      name = `r${this.#requestIds.size}`;
      this.#requestIds.set(id, name);
    }
    return body.slice(0, begin) + name + body.slice(end);
  }

  #note(text: string, document = ''): void {
    this.#trace.note(`${Math.round(this.#time.now * 1_000)} ${text}`, document);
  }

  #result(): SeedResult {
    return {
      seed: this.#options.seed,
      violation: this.violation,
      operations: this.#issued,
      requests: this.#clients.reduce((sum, { counts }) => sum + counts.requests, 0),
      days: this.#clock.days,
      faults: this.#faults.counts,
      outcomes: this.#auditor.outcomes,
      traceHash: this.#trace.hash(),
      traceTail: this.violation === null ? [] : this.#trace.tail(),
    };
  }
}

function lanesOf(chance: Chance): Lanes {
  const count = chance.pick([1, 1, 2, 4]);
  const atOnce = chance.between(1, count);
  return { count, atOnce, of: ({ account, endUser }) => (account * 31 + endUser.charCodeAt(35)) % count };
}
