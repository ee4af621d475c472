// `npm run power-loss -- --images 2000 --seed 1` records all writes and fsyncs of a process, simulates power losses,
// and opens the ledger files that each power loss might leave on the disk. In the controls, Scrip or the disk is
// weakened on purpose, so each control must lose writes. Needs Linux and strace (Debian: `apt-get install strace`).

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { faultsOfImage, Known } from './crash-image.ts';
import { SURVIVES, type Survives } from './disk.ts';
import { below, type Random, randomFrom } from './randomness.ts';
import type { JournalLine } from './recorded-commands.ts';
import { RecordedDisk } from './recorded-disk.ts';
import { readTrace, TRACED, TRACED_BYTES_MAX, type TracePart } from './strace.ts';

const RECORDER = join(import.meta.dirname, 'recorded-load.ts');
const WEAKENED = join(import.meta.dirname, 'weakened-sqlite.ts');

/** With this low limit, SQLite checkpoints and restarts the log many times in one recording. */
const CHECKPOINT_PAGES = 60;
const TURNS = 60;
const SERIALS_A_SESSION = 5_000;
const RECORDING_MS_MAX = 120_000;
const FAULTS_SHOWN = 5;
const LEDGER = 'ledger';
const JOURNAL = 'journal';
const IMAGE_FOLDER = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'scrip-image-'));
process.once('exit', () => rmSync(IMAGE_FOLDER, { recursive: true, force: true }));

interface Session {
  readonly failing?: string;
}

interface Recording {
  readonly name: string;
  readonly sessions: readonly Session[];
  readonly checkpointPages?: number;
  readonly synchronous?: 'NORMAL' | 'OFF';
  readonly isFsyncIgnored?: boolean;
  readonly isLogBelieved?: boolean;
  readonly isControl: boolean;
}

const options = parseArgs({
  options: {
    images: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    keep: { type: 'boolean' },
  },
}).values;
const images = Number(options.images);
const only = options.only === undefined ? null : new RegExp(options.only);
const seed = Number(options.seed);

interface Tally {
  images: number;
  lost: number;
  broken: number;
  failedFsyncs: number;
  failedWrites: number;
  acknowledged: number;
  readonly shown: string[];
}

const FSYNC_FAILS = 'fsync,fdatasync:error=EIO';
const plain: Session = {};
const RECORDINGS: readonly Recording[] = [
  { name: 'as shipped, killed and restarted', sessions: [plain, plain], isControl: false },
  {
    name: 'some fsyncs fail',
    sessions: [{ failing: `${FSYNC_FAILS}:when=13+11` }, plain],
    isControl: false,
  },
  {
    name: 'some writes fail',
    sessions: [{ failing: 'pwrite64:error=ENOSPC:when=400+61' }, plain],
    isControl: false,
  },
  {
    name: 'fsync fails until the process is killed',
    sessions: [{ failing: `${FSYNC_FAILS}:when=25+` }, plain],
    checkpointPages: 600,
    isControl: false,
  },
  {
    name: 'control: fsync fails until the process is killed, and the next process trusts its log',
    sessions: [{ failing: `${FSYNC_FAILS}:when=25+` }, plain],
    checkpointPages: 600,
    isLogBelieved: true,
    isControl: true,
  },
  { name: 'control: synchronous = NORMAL', sessions: [plain], synchronous: 'NORMAL', isControl: true },
  { name: 'control: synchronous = OFF', sessions: [plain], synchronous: 'OFF', isControl: true },
  { name: 'control: a disk that ignores fsync', sessions: [plain], isFsyncIgnored: true, isControl: true },
];
const EXAMINED = RECORDINGS.filter(({ isControl }) => !isControl).length;
const IMAGES_A_RECORDING = 250;
const CONTROL_IMAGES = 100;
/** One recording of a control may happen to lose no writes, so the test makes up to this many recordings. */
const CONTROL_RECORDINGS_MAX = 10;

if (spawnSync('strace', ['--version']).status !== 0) {
  say('strace is not installed, so writes cannot be recorded. On Debian: apt-get install strace.');
  process.exit(2);
}
const started = performance.now();
say(`seed ${seed}; repeat with: npm run power-loss -- --images ${images} --seed ${seed}`);
let hasFailed = false;
for (const recording of RECORDINGS.filter(({ name }) => only?.test(name) ?? true)) {
  const share = recording.isControl ? Math.min(CONTROL_IMAGES, images) : Math.ceil(images / EXAMINED);
  const tally = await examine(recording, share);
  // If SQLite used other system calls, no call would fail.
  const isFailing = recording.sessions.some(({ failing }) => failing !== undefined);
  const hasStruck = !isFailing || tally.failedFsyncs + tally.failedWrites > 0;
  const isRight = hasStruck && (recording.isControl ? tally.lost > 0 : tally.lost + tally.broken === 0);
  hasFailed ||= !isRight;
  say(
    `${isRight ? 'ok' : 'NOT OK'}  ${recording.name}: ${tally.images} images; ` +
      `${tally.lost} have lost acknowledged writes, ${tally.broken} are broken` +
      `${isFailing ? `; ${tally.failedFsyncs} fsyncs and ${tally.failedWrites} writes failed` : ''}; ${tally.acknowledged} writes acknowledged`,
  );
  if (!isRight) for (const sentence of tally.shown) say(`        ${sentence}`);
}
say(`${Math.round((performance.now() - started) / 1_000)} s`);
process.exit(hasFailed ? 1 : 0);

async function examine(recording: Recording, wanted: number): Promise<Tally> {
  const tally: Tally = { images: 0, lost: 0, broken: 0, failedFsyncs: 0, failedWrites: 0, acknowledged: 0, shown: [] };
  const isCaught = () => !recording.isControl || tally.lost > 0;
  for (let round = 0; tally.images < wanted || (!isCaught() && round < CONTROL_RECORDINGS_MAX); round++) {
    const folder = mkdtempSync(join(tmpdir(), 'scrip-power-'));
    try {
      const recorded = record(recording, folder, seed + round);
      const random = randomFrom(seed + round);
      const left = tally.images < wanted ? wanted - tally.images : wanted;
      await replay(recording, folder, recorded, Math.min(IMAGES_A_RECORDING, left), random, tally);
    } finally {
      if (!options.keep) rmSync(folder, { recursive: true, force: true });
    }
  }
  return tally;
}

interface Recorded {
  readonly trace: string;
  readonly left: ReadonlyMap<string, Buffer>;
}

function record(
  { sessions, synchronous, isLogBelieved, checkpointPages = CHECKPOINT_PAGES }: Recording,
  folder: string,
  roundSeed: number,
): Recorded[] {
  return sessions.map(({ failing }, index) => {
    const trace = join(folder, `trace-${index}`);
    const args = ['-f', '--seccomp-bpf', '-y', '-xx', '-s', String(TRACED_BYTES_MAX), '-o', trace];
    args.push('-e', `trace=${TRACED}`, '-e', 'signal=none');
    if (failing) args.push(`--inject=${failing}`);
    const load = [join(folder, LEDGER, 'scrip.db'), join(folder, JOURNAL), roundSeed + index, TURNS];
    args.push(process.execPath, RECORDER, ...load.map(String), String(1 + index * SERIALS_A_SESSION));
    const { signal, status, stderr } = spawnSync('strace', args, {
      timeout: RECORDING_MS_MAX,
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        NODE_OPTIONS: `--import=${WEAKENED}`,
        WEAKENED_CHECKPOINT_PAGES: String(checkpointPages),
        ...(isLogBelieved ? { WEAKENED_START: 'yes' } : {}),
        ...(synchronous ? { WEAKENED_SYNCHRONOUS: synchronous } : {}),
      },
    });
    if (signal !== 'SIGKILL') throw new Error(`the recording ended too early (${status ?? signal}): ${stderr}`);
    return { trace, left: filesIn(join(folder, LEDGER)) };
  });
}

function filesIn(folder: string): Map<string, Buffer> {
  const names = readdirSync(folder).filter((name) => !name.endsWith('-shm'));
  return new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
}

async function replay(
  recording: Recording,
  folder: string,
  recorded: readonly Recorded[],
  wanted: number,
  random: Random,
  tally: Tally,
) {
  const disk = new RecordedDisk(join(folder, LEDGER), recording);
  const known = new Known();
  const journal = join(folder, JOURNAL);
  let steps = 0;
  for (const { trace } of recorded) for await (const part of readTrace(trace)) steps += isStep(part, folder) ? 1 : 0;
  let left = wanted;
  for (const { trace, left: found } of recorded) {
    for await (const part of readTrace(trace)) {
      const lines = linesFor(journal, part);
      for (const line of lines) known.learn(line);
      disk.follow(part);
      if (!isStep(part, folder)) continue;
      for (; left > 0 && random() < left / steps; left--) await lose(disk, known, random, tally);
      steps -= 1;
    }
    disk.processEnded(found);
  }
  tally.failedFsyncs += disk.failedFsyncs;
  tally.failedWrites += disk.failedWrites;
  tally.acknowledged += known.acknowledged;
}

function isStep({ call }: TracePart, folder: string): boolean {
  return call.name !== 'close' && call.args.includes(`<${folder}/`);
}

function linesFor(journal: string, { part, call }: TracePart): JournalLine[] {
  if (part !== 'begin' || call.name !== 'write' || !call.args.includes(`<${journal}>`)) return [];
  return [JSON.parse(String(call.strings[0]))];
}

async function lose(disk: RecordedDisk, known: Known, random: Random, tally: Tally): Promise<void> {
  const survives = SURVIVES[below(SURVIVES.length, random)] as Survives;
  const files = disk.disk.afterPowerLoss(survives, random);
  const { lost, broken } = await faultsOfImage(files, known, IMAGE_FOLDER);
  tally.images += 1;
  tally.lost += lost.length > 0 ? 1 : 0;
  tally.broken += broken.length > 0 ? 1 : 0;
  for (const sentence of [...broken, ...lost].slice(0, 1))
    if (tally.shown.length < FAULTS_SHOWN)
      tally.shown.push(`image ${tally.images}, surviving changes: ${survives}: ${sentence}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
