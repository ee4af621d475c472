// Kills servers and the webhook receiver at random moments under load. Then compares the event log with the postings,
// and the deliveries with the event log.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventSettings } from '../../src/store/event-log.ts';
import { below, type Random, randomFrom } from '../crash/randomness.ts';
import { freePort } from '../store/postgres/postgres-server.ts';
import { clockOf, EventLoad } from './event-load.ts';
import { ACCOUNT, EventServers, type ServerOptions } from './event-servers.ts';
import { arrivalProblems, expectedEvents, type ListedEvent, logProblems, readLog } from './expected-events.ts';
import { Receiver } from './receiver.ts';

/** The thresholds are sorted as the stores sort them. */
const SETTINGS: EventSettings = {
  expiringDays: 7,
  thresholds: [{ credits: 100 }, { percent: 50 }, { credits: 500 }],
};
const SHARE_OF_STARTS_KILLED = 0.1;
const START_MS = 800;
/** Before each kill, the test waits for this many writes, so that even on a busy machine there are events to lose. */
const WRITES_A_KILL_MIN = 30;
const RESPONSE_MS_MAX = 8;
const LOAD_LOOK_MS = 10;
const LOOK_MS = 500;
/**
 * The test accepts the event log after this many checks in a row have found the log complete and unchanged. Scrip
 * stores renewals and lapses once a second, so the checks together must take longer than a second.
 */
const SAME_LOOKS = 5;

export interface KillOptions extends ServerOptions {
  readonly kills: number;
  readonly loadMsMin: number;
  readonly loadMsMax: number;
  readonly databaseUrl: string | null;
  readonly endpoints: number;
  /**
   * After the load, the test waits for a complete event log, and then for all deliveries. This is the time limit for
   * each of the two waits.
   */
  readonly settledWithinMs: number;
}

export interface EventKills {
  senderKills: number;
  receiverKills: number;
  startsKilled: number;
  acknowledged: number;
  clockMoves: number;
  settledMs: number;
  events: number;
  readonly types: Record<string, number>;
  arrivals: number;
  twice: number;
  readonly problems: string[];
}

export async function killEvents(options: KillOptions, random: Random): Promise<EventKills> {
  const folder = mkdtempSync(join(tmpdir(), 'scrip-kill-events-'));
  const run = await KilledEvents.in(folder, options, random);
  try {
    return await run.run();
  } finally {
    await run.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

class KilledEvents {
  readonly #options: KillOptions;
  readonly #random: Random;
  readonly #servers: EventServers;
  readonly #receiver: Receiver;
  readonly #paths: readonly string[];
  readonly #found: EventKills = {
    senderKills: 0,
    receiverKills: 0,
    startsKilled: 0,
    acknowledged: 0,
    clockMoves: 0,
    settledMs: 0,
    events: 0,
    types: {},
    arrivals: 0,
    twice: 0,
    problems: [],
  };
  #secret = '';

  static async in(folder: string, options: KillOptions, random: Random): Promise<KilledEvents> {
    const databaseUrl = options.databaseUrl ?? `file:${join(folder, 'scrip.db')}`;
    const servers = await EventServers.on(databaseUrl, options);
    const receiver = new Receiver(await freePort(), join(folder, 'arrivals'), RESPONSE_MS_MAX);
    return new KilledEvents(servers, receiver, options, random);
  }

  private constructor(servers: EventServers, receiver: Receiver, options: KillOptions, random: Random) {
    this.#servers = servers;
    this.#receiver = receiver;
    this.#options = options;
    this.#random = random;
    this.#paths = Array.from({ length: options.endpoints }, (_, index) => `/${index + 1}`);
  }

  async run(): Promise<EventKills> {
    const { urls } = this.#servers;
    await this.#receiver.start();
    for (const index of urls.keys()) await this.#servers.start(index);
    this.#secret = await this.#servers.setUp(
      SETTINGS,
      this.#paths.map((path) => this.#receiver.urlOf(path)),
    );
    // The load has its own random number generator. With a shared generator, the timing of the load would affect which
    // processes are killed.
    const load = new EventLoad({ urls, secret: this.#secret }, randomFrom(below(2 ** 32, this.#random)));
    load.start();
    const { kills, loadMsMin, loadMsMax } = this.#options;
    // Each pair of kills hits one server and the receiver, in random order.
    let isSender = false;
    for (let kill = 0; kill < kills; kill++) {
      const enough = load.acknowledged + WRITES_A_KILL_MIN;
      await sleep(loadMsMin + this.#random() * (loadMsMax - loadMsMin));
      while (load.acknowledged < enough) await sleep(LOAD_LOOK_MS);
      isSender = kill % 2 === 0 ? this.#random() < 0.5 : !isSender;
      if (isSender) await this.#killSender();
      else await this.#killReceiver();
    }
    await load.stop();
    this.#found.acknowledged = load.acknowledged;
    this.#found.clockMoves = load.clockMoves;
    await this.#judge();
    return this.#found;
  }

  async end(): Promise<void> {
    await Promise.all([this.#servers.killAll(), this.#receiver.kill()]);
  }

  async #killSender(): Promise<void> {
    const index = below(this.#servers.urls.length, this.#random);
    await this.#servers.kill(index);
    this.#found.senderKills += 1;
    if (this.#random() < SHARE_OF_STARTS_KILLED) {
      this.#servers.begin(index);
      await sleep(this.#random() * START_MS);
      await this.#servers.kill(index);
      this.#found.startsKilled += 1;
    }
    await this.#servers.start(index);
  }

  async #killReceiver(): Promise<void> {
    await this.#receiver.kill();
    this.#found.receiverKills += 1;
    await this.#receiver.start();
  }

  async #judge(): Promise<void> {
    const found = this.#found;
    const began = performance.now();
    const log = await this.#completeLog();
    found.events = log.length;
    for (const { type } of log) found.types[type] = (found.types[type] ?? 0) + 1;
    await this.#waitForDeliveries(log);
    found.settledMs = Math.round(performance.now() - began);
    found.arrivals = this.#receiver.read().length;
    for (const path of this.#paths) {
      const arrivals = this.#receiver.read().filter((arrival) => arrival.path === path);
      found.problems.push(...arrivalProblems(log, arrivals));
      const ids = new Set(arrivals.map(({ id }) => id));
      const again = new Set(arrivals.filter(({ id }) => !ids.delete(id)).map(({ id }) => id));
      found.twice += again.size;
    }
    const said = await this.#servers.stop();
    if (said !== '') found.problems.push(`the servers wrote: ${said}`);
  }

  async #completeLog(): Promise<readonly ListedEvent[]> {
    const deadline = performance.now() + this.#options.settledWithinMs;
    const [url = ''] = this.#servers.urls;
    for (let same = 0, length = 0; ; ) {
      const until = await clockOf(url, this.#secret);
      const expected = await expectedEvents(this.#servers.database, ACCOUNT, SETTINGS, until);
      const log = await readLog(url, this.#secret);
      const problems = logProblems(log, expected);
      same = problems.length === 0 && log.length === length ? same + 1 : 0;
      length = log.length;
      if (same >= SAME_LOOKS || performance.now() > deadline) {
        this.#found.problems.push(...problems);
        return log;
      }
      await sleep(LOOK_MS);
    }
  }

  async #waitForDeliveries(log: readonly ListedEvent[]): Promise<void> {
    const deadline = performance.now() + this.#options.settledWithinMs;
    const isDelivered = (path: string) => {
      const ids = new Set(this.#receiver.read().flatMap((arrival) => (arrival.path === path ? arrival.id : [])));
      return log.every(({ id }) => ids.has(id));
    };
    while (performance.now() < deadline) {
      if (this.#paths.every(isDelivered) && (await this.#servers.pending()) === 0) return;
      await sleep(LOOK_MS);
    }
    this.#found.problems.push(`not all events were delivered; ${await this.#servers.pending()} events are pending`);
  }
}

export function summaryOf(found: EventKills): string {
  const types = Object.entries(found.types).map(([type, count]) => `${count} ${type}`);
  return (
    `${found.senderKills} kills of a server and ${found.receiverKills} of the receiver, and ${found.startsKilled} during startup: ` +
    `${found.acknowledged} writes acknowledged, the clock moved ${found.clockMoves} times; ${found.events} events; ` +
    `${found.arrivals} deliveries, ${found.twice} events delivered more than once; ${found.problems.length} problems; ` +
    `everything delivered ${Math.round(found.settledMs / 1_000)} s after the load (${types.join(', ')})`
  );
}
