// Measures the start-up time and the memory of a server with a ledger of a million end users. A second part measures
// the disk space that one subtraction or one addition uses.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { closedLoop } from '../closed-loop.ts';
import { costsOf } from '../process-costs.ts';
import { type Figure, median } from '../results.ts';
import type { Subjects } from '../subjects.ts';
import {
  ADD_MEDIUM,
  CROWD_LARGE,
  CROWD_MEDIUM,
  endUserId,
  SUBTRACT_LARGE,
  SUBTRACT_MEDIUM,
  type Workload,
} from '../workload.ts';
import type { Part } from './part.ts';

const CLI = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const STARTS = 5;
const MIB = 2 ** 20;
const CONNECTIONS = 64;
/** Long enough that, at 23,000 requests per second, more than a third of the end users get a request. */
const LOADED_SECONDS = 20;

export const largeLedger: Part = {
  name: 'large-ledger',
  title: 'A ledger of 1,000,000 end users',
  async run(subjects, { connections }) {
    const { file, secret } = await subjects.seed('large', [CROWD_LARGE]);
    const figures: Figure[] = [{ name: 'size of the file', value: statSync(file).size / MIB, unit: 'MiB' }];
    const starts: number[] = [];
    for (let start = 0; start < STARTS; start++) starts.push(await secondsToFirstAnswer(file, secret));
    figures.push({ name: 'from start to the first subtraction', value: median(starts), unit: 's' });
    const subject = await subjects.scripOnSqlite(file, secret);
    const resident = () => costsOf(subject.pids).residentBytes / MIB;
    figures.push({ name: 'resident memory at the start', value: resident(), unit: 'MiB' });
    await closedLoop(subject, SUBTRACT_LARGE, { connections: connections ?? CONNECTIONS, seconds: LOADED_SECONDS });
    figures.push({ name: `resident memory after ${LOADED_SECONDS} s of subtractions`, value: resident(), unit: 'MiB' });
    await subjects.end(subject);
    return { rows: [], figures };
  },
};

export const disk: Part = {
  name: 'disk',
  title: 'Bytes on disk',
  async run(subjects, settings) {
    const figures: Figure[] = [];
    const keyed = { ...SUBTRACT_MEDIUM, keyed: true };
    figures.push(...(await bytesOfOperations(subjects, 'a subtraction', SUBTRACT_MEDIUM, settings.seconds)));
    figures.push(...(await bytesOfOperations(subjects, 'a subtraction with a key', keyed, settings.seconds)));
    figures.push(...(await bytesOfOperations(subjects, 'an addition', ADD_MEDIUM, settings.seconds)));
    figures.push(...(await bytesOnPostgres(subjects, settings.seconds)));
    return { rows: [], figures };
  },
};

async function secondsToFirstAnswer(file: string, secret: string): Promise<number> {
  const started = performance.now();
  const { PATH = '' } = process.env;
  const env = { PATH, DATABASE_URL: `file:${file}`, PORT: '0', LOG_LEVEL: 'warn' };
  const server = spawn(process.execPath, [CLI, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(server.stdout, 'data')) as [Buffer];
  const [url] = /http:\/\/[\d.:]+/.exec(line.toString()) ?? [];
  const response = await fetch(`${url}/subtract`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ end_user_id: endUserId(1), amount: 1 }),
  });
  const seconds = (performance.now() - started) / 1_000;
  if (response.status !== 200) throw new Error(await response.text());
  await response.arrayBuffer();
  server.kill('SIGTERM');
  await once(server, 'exit');
  return seconds;
}

async function bytesOfOperations(
  subjects: Subjects,
  what: string,
  workload: Workload,
  seconds: number,
): Promise<Figure[]> {
  const { file, secret } = await subjects.seed(what.replaceAll(' ', '-'), [CROWD_MEDIUM]);
  const stored = () =>
    [file, `${file}-wal`].reduce((sum, each) => sum + (existsSync(each) ? statSync(each).size : 0), 0);
  const before = stored();
  const subject = await subjects.scripOnSqlite(file, secret);
  const written = costsOf(subject.pids).writtenBytes;
  const { requests } = await closedLoop(subject, workload, { connections: CONNECTIONS, seconds: 2 * seconds });
  const writtenBytes = costsOf(subject.pids).writtenBytes - written;
  // When the server stops, it copies the log into the ledger file.
  await subjects.end(subject);
  return [
    { name: `SQLite, ${what}, kept`, value: (stored() - before) / requests, unit: 'bytes' },
    { name: `SQLite, ${what}, written`, value: writtenBytes / requests, unit: 'bytes' },
  ];
}

async function bytesOnPostgres(subjects: Subjects, seconds: number): Promise<Figure[]> {
  const subject = await subjects.scripOnPostgres([CROWD_MEDIUM]);
  const { rows: databases } = await subjects.postgres.query(
    `SELECT datname FROM pg_database WHERE datname LIKE 'test_%'`,
  );
  const database = String(databases[0].datname);
  const state = async () => {
    await subjects.postgres.query('CHECKPOINT', database);
    const { rows } = await subjects.postgres.query(
      `SELECT pg_database_size(current_database())::float8 AS size, (pg_current_wal_lsn() - '0/0')::float8 AS log`,
      database,
    );
    return rows[0] as { size: number; log: number };
  };
  const before = await state();
  const { requests } = await closedLoop(subject, SUBTRACT_MEDIUM, { connections: CONNECTIONS, seconds: 2 * seconds });
  const after = await state();
  return [
    { name: 'PostgreSQL, a subtraction, kept', value: (after.size - before.size) / requests, unit: 'bytes' },
    {
      name: 'PostgreSQL, a subtraction, written to the log',
      value: (after.log - before.log) / requests,
      unit: 'bytes',
    },
  ];
}
