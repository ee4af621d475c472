// Kills a server repeatedly while clients write to it, and checks the ledger after each restart.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledgerAt, Running } from '../cli/scrip-command.ts';
import { auditProblems, newKey } from '../load/server-process.ts';
import { type Address, Requests, runClient } from './clients.ts';
import { nameOf } from './effects.ts';
import { compared, findingsOf, isAcknowledged, readEffects } from './findings.ts';
import type { Random } from './randomness.ts';
import type { Sent } from './requests.ts';

const WEAKENED = join(import.meta.dirname, 'weakened-writer.ts');

const STOPPED_STATUS = 500;

const CLIENTS = 8;
const END_USERS = 16;
const LOAD_MS_MAX = 150;
/**
 * The server is also killed during the first restart on each ledger. During a later restart, the server is killed with
 * this probability.
 */
const STARTS_KILLED = 0.1;
const START_MS = 600;
/** A new ledger is used after this many kills: each audit reads the whole ledger, so ledgers must stay small. */
const KILLS_A_LEDGER = 20;

export interface Kills {
  kills: number;
  betweenCommitAndAnswer: number;
  startsKilled: number;
  acknowledged: number;
  refused: number;
  unanswered: number;
  unansweredDone: number;
  lost: number;
  halfBatches: number;
  batches: number;
  readonly wrong: string[];
  readonly startsMs: number[];
}

/** @param weakness see weakened-writer.ts; null for the real writer */
export async function killRepeatedly(
  kills: number,
  random: Random,
  weakness: 'late' | 'halves' | null,
  isEnough: (found: Kills) => boolean = () => false,
): Promise<Kills> {
  const total: Kills = {
    kills: 0,
    betweenCommitAndAnswer: 0,
    startsKilled: 0,
    acknowledged: 0,
    refused: 0,
    unanswered: 0,
    unansweredDone: 0,
    lost: 0,
    halfBatches: 0,
    batches: 0,
    wrong: [],
    startsMs: [],
  };
  while (total.kills < kills && !isEnough(total)) {
    const folder = mkdtempSync(join(tmpdir(), 'scrip-kill-'));
    const ledger = new KilledLedger(folder, random, weakness, total);
    try {
      await ledger.run(Math.min(KILLS_A_LEDGER, kills - total.kills), isEnough);
    } finally {
      await ledger.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return total;
}

class KilledLedger {
  readonly #file: string;
  readonly #records: string;
  readonly #random: Random;
  readonly #environment: Record<string, string>;
  readonly #total: Kills;
  readonly #requests: Requests;
  #secret = '';
  #server: Running | null = null;
  #starts = 0;
  #lost = 0;
  #record = '';

  constructor(folder: string, random: Random, weakness: string | null, total: Kills) {
    this.#file = join(folder, 'scrip.db');
    this.#records = join(folder, 'batches');
    this.#random = random;
    this.#total = total;
    this.#requests = new Requests(random);
    this.#environment = {
      ...ledgerAt(this.#file),
      PORT: '0',
      NODE_OPTIONS: `--import=${WEAKENED}`,
      ...(weakness ? { WEAKENED_WRITER: weakness } : {}),
    };
  }

  async run(kills: number, isEnough: (found: Kills) => boolean): Promise<void> {
    this.#secret = await newKey(`file:${this.#file}`);
    let address = await this.#start();
    for (let kill = 0; kill < kills && !isEnough(this.#total); kill++) {
      const endUsers = this.#requests.newEndUsers(END_USERS);
      const from = this.#requests.all.length;
      const record = this.#record;
      await this.#loadAndKill(address);
      if (kill === 0 || this.#random() < STARTS_KILLED) await this.#killStart();
      address = await this.#start({ isCounted: true });
      await this.#compare(address, endUsers, from, record);
    }
    await this.#compareAll(address);
  }

  async stop(): Promise<void> {
    this.#server?.kill('SIGKILL');
    await this.#server?.ended;
  }

  async #loadAndKill(address: Address): Promise<void> {
    const clients = Array.from({ length: CLIENTS }, () => runClient(address, this.#requests, this.#random));
    const from = this.#requests.all.length;
    const isUnderWay = (one: Sent) => isAcknowledged(one) || one.answer?.status === STOPPED_STATUS;
    while (!this.#requests.all.slice(from).some(isUnderWay)) await sleep(1);
    await sleep(this.#random() * LOAD_MS_MAX);
    await this.stop();
    await Promise.all(clients);
    this.#total.kills += 1;
  }

  async #killStart(): Promise<void> {
    const start = new Running(['serve'], this.#environment);
    await sleep(this.#random() * START_MS);
    start.kill('SIGKILL');
    await start.ended;
    this.#total.startsKilled += 1;
  }

  async #start({ isCounted = false } = {}): Promise<Address> {
    const begun = performance.now();
    this.#record = `${this.#records}-${this.#starts++}`;
    const server = new Running(['serve'], { ...this.#environment, BATCH_RECORD: this.#record });
    this.#server = server;
    const [url] = await server.says(/^Scrip is listening on (\S+)$/m);
    await (await fetch(`${url}/readyz`)).text();
    if (isCounted) this.#total.startsMs.push(performance.now() - begun);
    return { url: String(url), secret: this.#secret };
  }

  async #compare(address: Address, endUsers: readonly string[], from: number, record: string): Promise<void> {
    const total = this.#total;
    const sent = this.#requests.all.slice(from);
    const { times } = await readEffects(address, endUsers);
    this.#compareBatches(times, record);
    const findings = await findingsOf(address, endUsers, sent);
    total.acknowledged += sent.filter(isAcknowledged).length;
    total.unanswered += sent.filter(({ answer }) => answer === null).length;
    total.refused += sent.filter((one) => one.answer !== null && !isAcknowledged(one)).length;
    total.unansweredDone += findings.unansweredDone;
    total.betweenCommitAndAnswer += findings.unansweredDone > 0 ? 1 : 0;
    total.lost += findings.lost;
    this.#lost += findings.lost;
    total.wrong.push(...findings.wrong, ...(await auditProblems(`file:${this.#file}`)));
  }

  async #compareAll(address: Address): Promise<void> {
    const { all } = this.#requests;
    const endUsers = new Set(all.map(({ endUser }) => endUser));
    const { lost, wrong } = compared(await readEffects(address, [...endUsers]), all);
    // Writes that were missing right after a kill have already been counted as lost.
    this.#total.lost += Math.max(0, lost - this.#lost);
    this.#total.wrong.push(...wrong);
  }

  /** Additions are never refused, so the ledger must contain either all additions of a batch or none of them. */
  #compareBatches(times: ReadonlyMap<string, number>, record: string): void {
    // The kill may have left an incomplete last line.
    const lines = readFileSync(record, 'utf8').split('\n').slice(0, -1);
    for (const line of lines) {
      const additions = JSON.parse(line) as number[];
      const there = additions.filter((number) => times.has(nameOf({ kind: 'add', number }))).length;
      if (there !== 0 && there !== additions.length) this.#total.halfBatches += 1;
      this.#total.batches += 1;
    }
  }
}

export function summaryOf(kills: Kills): string {
  const starts = kills.startsMs.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(starts[Math.min(starts.length - 1, Math.floor(starts.length * share))] ?? 0);
  const share = Math.round((100 * kills.betweenCommitAndAnswer) / kills.kills);
  return (
    `${kills.kills} kills, and ${kills.startsKilled} during startup: ${kills.acknowledged} acknowledged, ${kills.lost} lost; ` +
    `${kills.batches} batches, ${kills.halfBatches} stored only in part; ${kills.wrong.length} other problems; ` +
    `${kills.refused} refused, ${kills.unanswered} without a response; ${kills.unansweredDone} with an unknown outcome were executed; ` +
    `${share}% of the kills came between a commit and its response; running again after ${at(0.5)} ms (median), ${at(1)} ms at most`
  );
}
