// Runs the real server under constant load, with kills, clock jumps and backups, and measures it every few seconds. At
// the end, the ledger must contain every acknowledged write. The last backup must contain every write that was
// acknowledged before the backup began.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledgerAt, Running, scrip } from '../cli/scrip-command.ts';
import { type Effects, effectsOf } from '../crash/effects.ts';
import { compared, isAcknowledged, isUnknown } from '../crash/findings.ts';
import type { Sent } from '../crash/requests.ts';
import { Random } from '../load/random.ts';
import { auditProblems, newKey } from '../load/server-process.ts';
import { setClock } from './movable-clock.ts';
import { noReadings, type Readings, read } from './readings.ts';
import { type Counts, SoakClients } from './soak-clients.ts';

export interface SoakPlan {
  readonly seed: number;
  readonly seconds: number;
  /** Requests a second. */
  readonly rate: number;
  readonly kills: number;
  readonly readEverySeconds: number;
  readonly jumpEverySeconds: number;
  readonly backupEverySeconds: number;
  readonly isLeaking: boolean;
}

export interface SoakEvent {
  readonly seconds: number;
  readonly kind: 'kill' | 'jump' | 'backup';
  /** The downtime after a kill, the size of a clock jump, or the duration of a backup. */
  readonly ms: number;
}

export interface Soak {
  readonly plan: SoakPlan;
  readonly seconds: number;
  readonly counts: Counts;
  readonly endUsers: number;
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly lost: number;
  readonly lostInBackup: number;
  readonly checkedInBackup: number;
  readonly wrong: readonly string[];
  /** The sum of all forward clock jumps. */
  readonly days: number;
  readonly events: readonly SoakEvent[];
  readonly readings: Readings;
}

const PRELOADS = ['movable-clock.ts', 'leaking-server.ts', 'small-caches.ts'].map((file) =>
  join(import.meta.dirname, file),
);
const HOUR_MS = 3_600_000;
const JUMP_HOURS_MAX = 48;
/** The clock jumps of a long soak test add up to more than this many hours, so that idempotency records expire. */
const KEEP_KEYS_HOURS = '240';
const BACK_EVERY = 4;
const BACK_HOURS_MAX = 6;
/**
 * All kills happen in this initial fraction of the test. After the last kill, one process runs until the end, long
 * enough to show whether its memory grows.
 */
const KILLING = 1 / 6;
const LOG_LINE_OF_AN_ERROR = /"level":(?:50|60)|^\s+at /m;

export async function soak(plan: SoakPlan): Promise<Soak> {
  const folder = mkdtempSync(join(tmpdir(), 'scrip-soak-'));
  const soaked = new Soaked(folder, plan);
  try {
    return await soaked.run();
  } finally {
    await soaked.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Backup {
  readonly file: string;
  readonly before: readonly Sent[];
}

class Soaked {
  readonly #plan: SoakPlan;
  readonly #folder: string;
  readonly #file: string;
  readonly #clockFile: string;
  readonly #random: Random;
  readonly #clients: SoakClients;
  readonly #environment: Record<string, string>;
  readonly #events: SoakEvent[] = [];
  readonly #readings = noReadings();
  readonly #wrong: string[] = [];
  #server: Running | null = null;
  #secret = '';
  #port = 0;
  #life = -1;
  #started = 0;
  #downSeconds = 0;
  #aheadMs = 0;
  #forwardMs = 0;
  #jumps = 0;
  #backup: Backup | null = null;
  #backingUp: Promise<void> | null = null;

  constructor(folder: string, plan: SoakPlan) {
    this.#plan = plan;
    this.#folder = folder;
    this.#file = join(folder, 'scrip.db');
    this.#clockFile = join(folder, 'clock');
    this.#random = new Random(plan.seed);
    this.#clients = new SoakClients(plan.rate, this.#random);
    setClock(this.#clockFile, 0);
    this.#environment = {
      ...ledgerAt(this.#file),
      PORT: '0',
      LOG_LEVEL: 'error',
      IDEMPOTENCY_HOURS: KEEP_KEYS_HOURS,
      CLOCK_FILE: this.#clockFile,
      NODE_OPTIONS: PRELOADS.map((file) => `--import=${file}`).join(' '),
      ...(plan.isLeaking ? { LEAKING: 'yes' } : {}),
    };
  }

  readonly #killServer = () => void this.#server?.kill('SIGKILL');

  async run(): Promise<Soak> {
    process.on('exit', this.#killServer);
    this.#secret = await newKey(`file:${this.#file}`);
    await this.#start();
    this.#started = performance.now();
    this.#clients.start();
    await this.#live();
    const seconds = this.#seconds();
    await this.#clients.stop();
    await this.#backingUp;
    const writes = this.#clients.writes;
    const url = `http://127.0.0.1:${this.#port}`;
    const { lost, wrong } = compared(await this.#effects(url), writes);
    this.#wrong.push(...wrong);
    await this.#stopCleanly();
    this.#wrong.push(...(await auditProblems(`file:${this.#file}`)));
    return {
      plan: this.#plan,
      seconds,
      counts: this.#clients.counts,
      endUsers: this.#clients.endUsers.length,
      acknowledged: writes.filter(isAcknowledged).length,
      refused: writes.filter((one) => one.answer !== null && !isAcknowledged(one)).length,
      unknown: writes.filter(isUnknown).length,
      lost,
      lostInBackup: await this.#lostInBackup(),
      checkedInBackup: this.#backup?.before.length ?? 0,
      wrong: this.#wrong,
      days: this.#forwardMs / (24 * HOUR_MS),
      events: this.#events,
      readings: this.#readings,
    };
  }

  async end(): Promise<void> {
    process.off('exit', this.#killServer);
    this.#killServer();
    await this.#server?.ended;
  }

  async #live(): Promise<void> {
    const { seconds, kills, readEverySeconds, jumpEverySeconds, backupEverySeconds } = this.#plan;
    const killAt = Array.from({ length: kills }, (_, index) => {
      const place = (index + 0.25 + 0.5 * this.#random.next()) / kills;
      return place * seconds * KILLING;
    });
    const next = { read: readEverySeconds, jump: jumpEverySeconds, backup: backupEverySeconds };
    // A slow restart must not shorten the rest of the test.
    while (this.#seconds() < seconds + this.#downSeconds) {
      const now = this.#seconds();
      if (killAt[0] !== undefined && now >= killAt[0] && this.#isMeasured()) {
        killAt.shift();
        await this.#kill();
      }
      if (now >= next.jump) {
        next.jump += jumpEverySeconds;
        this.#jump();
      }
      if (now >= next.backup && this.#backingUp === null) {
        next.backup += backupEverySeconds;
        this.#backingUp = this.#backUp().finally(() => {
          this.#backingUp = null;
        });
      }
      if (now >= next.read) {
        next.read += readEverySeconds;
        this.#read();
      }
      await sleep(10);
    }
  }

  #seconds(): number {
    return (performance.now() - this.#started) / 1_000;
  }

  #read(): void {
    const at = { pid: this.#server?.pid as number, file: this.#file, life: this.#life, seconds: this.#seconds() };
    read(at, this.#clients.takeLatencies(), this.#readings);
  }

  /** Whether each series contains a measurement of the running process. */
  #isMeasured(): boolean {
    return this.#readings.median.at(-1)?.life === this.#life;
  }

  #jump(): void {
    this.#jumps += 1;
    const isBack = this.#jumps % BACK_EVERY === 0;
    const ms = Math.floor(this.#random.next() * (isBack ? -BACK_HOURS_MAX : JUMP_HOURS_MAX) * HOUR_MS);
    this.#aheadMs += ms;
    this.#forwardMs += Math.max(0, ms);
    setClock(this.#clockFile, this.#aheadMs);
    this.#events.push({ seconds: this.#seconds(), kind: 'jump', ms });
  }

  async #kill(): Promise<void> {
    const [seconds, begun] = [this.#seconds(), performance.now()];
    this.#server?.kill('SIGKILL');
    this.#lookAtLog((await this.#server?.ended)?.stderr ?? '');
    this.#clients.setServer(null);
    await this.#start();
    this.#clients.takeLatencies();
    const ms = performance.now() - begun;
    this.#downSeconds += ms / 1_000;
    this.#events.push({ seconds, kind: 'kill', ms });
  }

  async #start(): Promise<void> {
    const server = new Running(['serve'], this.#environment);
    this.#server = server;
    this.#port = await portOf(server);
    this.#life += 1;
    this.#clients.setServer({ port: this.#port, secret: this.#secret });
  }

  async #stopCleanly(): Promise<void> {
    this.#server?.kill('SIGTERM');
    const ended = await this.#server?.ended;
    if (ended?.code !== 0) this.#wrong.push(`after SIGTERM the server exited with ${ended?.code}`);
    this.#lookAtLog(ended?.stderr ?? '');
  }

  #lookAtLog(log: string): void {
    const line = log.split('\n').find((one) => LOG_LINE_OF_AN_ERROR.test(one));
    if (line !== undefined) this.#wrong.push(`the server logged: ${line.slice(0, 500)}`);
  }

  async #backUp(): Promise<void> {
    const [seconds, begun] = [this.#seconds(), performance.now()];
    const before = this.#clients.writes.filter(isAcknowledged);
    const file = join(this.#folder, `backup-${Math.round(seconds * 1_000)}.db`);
    const { code, stderr } = await scrip(['backup', file], ledgerAt(this.#file));
    if (code !== 0) {
      this.#wrong.push(`a backup exited with ${code}: ${stderr}`);
      return;
    }
    this.#events.push({ seconds, kind: 'backup', ms: performance.now() - begun });
    if (this.#backup) rmSync(this.#backup.file);
    this.#backup = { file, before };
  }

  async #lostInBackup(): Promise<number> {
    if (this.#backup === null) return 0;
    const restored = ledgerAt(join(this.#folder, 'restored.db'));
    const { code, stderr } = await scrip(['restore', this.#backup.file], restored);
    if (code !== 0) {
      this.#wrong.push(`restoring the last backup failed: ${stderr}`);
      return this.#backup.before.length;
    }
    const server = new Running(['serve'], { ...this.#environment, ...restored });
    try {
      const effects = await this.#effects(`http://127.0.0.1:${await portOf(server)}`);
      this.#wrong.push(...effects.unread.values());
      // Only missing writes count: the backup may contain writes that were acknowledged after the backup began.
      return compared(effects, this.#backup.before).lost;
    } finally {
      server.kill('SIGKILL');
      await server.ended;
    }
  }

  #effects(url: string): Promise<Effects> {
    return effectsOf(url, { authorization: `Bearer ${this.#secret}` }, this.#clients.endUsers);
  }
}

async function portOf(server: Running): Promise<number> {
  const [port] = await server.says(/^Scrip is listening on http:\/\/[\d.]+:(\d+)$/m);
  return Number(port);
}
