// The two servers that the event benchmarks compare. Both derive events, but only one has a webhook endpoint and,
// optionally, thresholds.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Source } from '../../bench/open-loop.ts';
import { type Subject, Subjects } from '../../bench/subjects.ts';
import { endUserId, type Group, type Request } from '../../bench/workload.ts';
import { databaseOf } from '../../src/config.ts';
import { Thresholds } from '../../src/events/thresholds.ts';
import { Endpoints } from '../../src/events/webhooks/endpoints.ts';
import { openAccountDatabase } from '../../src/open-store.ts';
import { openWebhookSecrets } from '../../src/open-webhooks.ts';
import type { EventType, Threshold } from '../../src/store/event-log.ts';
import { freePort } from '../store/postgres/postgres-server.ts';
import { Receiver } from './receiver.ts';

const ACCOUNT_NUMBER = 1;
const LOOK_MS = 250;
/** The webhook job finds new events within this many milliseconds. */
const NUDGED_MS = 1_500;

export interface Watched {
  readonly thresholds: readonly Threshold[];
  /** An empty list selects all types. */
  readonly types: readonly EventType[];
}

export interface MeasuredSubjects {
  readonly watched: Subject;
  readonly plain: Subject;
  readonly receiver: Receiver;
  end(): Promise<void>;
}

export async function startSubjects(group: Group, { thresholds, types }: Watched): Promise<MeasuredSubjects> {
  const subjects = new Subjects();
  const receiver = new Receiver(await freePort(), join(subjects.folder, 'arrivals'));
  const end = async () => {
    await subjects.endAll();
    await receiver.kill();
  };
  try {
    await receiver.start();
    const [first, second] = [await subjects.seed('watched', [group]), await subjects.seed('plain', [group])];
    await watch(first.file, receiver.urlOf('/'), { thresholds, types });
    const watched = await subjects.scripOnSqlite(first.file, first.secret);
    const plain = await subjects.scripOnSqlite(second.file, second.secret);
    return { watched, plain, receiver, end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function watch(file: string, url: string, { thresholds, types }: Watched): Promise<void> {
  const config = {
    database: databaseOf({ DATABASE_URL: `file:${file}` }),
    events: { retentionMs: 0, allowPrivate: false, key: null },
  };
  await using database = await openAccountDatabase(config.database);
  for (const threshold of thresholds) await new Thresholds(database, Date.now).add(ACCOUNT_NUMBER, threshold);
  const rules = { allowPrivate: false, allowLoopback: true };
  const endpoints = new Endpoints({ database, secrets: openWebhookSecrets(config), now: Date.now, rules });
  await endpoints.add({ account: ACCOUNT_NUMBER, url, types, createdBy: 'operator' });
}

/** Waits until the events of all earlier writes are derived. */
export async function derived({ url }: Subject): Promise<void> {
  const from = performance.now();
  for (;;) {
    await sleep(LOOK_MS);
    const lagMs = 1_000 * (await metric(url, 'scrip_event_lag_seconds'));
    if (lagMs < performance.now() - from - LOOK_MS) return;
  }
}

export async function delivered(subject: Subject): Promise<void> {
  await derived(subject);
  await sleep(NUDGED_MS);
  while ((await metric(subject.url, 'scrip_webhook_oldest_event_seconds')) > 0) await sleep(LOOK_MS);
}

/** Watches the metric `scrip_event_lag_seconds` until `stop` is called. `stop` returns the greatest value. */
export function watchLag({ url }: Subject): { stop(): Promise<number> } {
  let isStopped = false;
  let greatest = 0;
  const sampling = (async () => {
    while (!isStopped) {
      greatest = Math.max(greatest, await metric(url, 'scrip_event_lag_seconds'));
      await sleep(LOOK_MS);
    }
  })();
  return {
    async stop() {
      isStopped = true;
      await sampling;
      return greatest;
    },
  };
}

export class EachUser implements Source {
  readonly #path: string;
  #next = 0;

  constructor(path: '/add' | '/subtract') {
    this.#path = path;
  }

  next(): Request {
    const body = `{"end_user_id":"${endUserId(this.#next++)}","amount":1}`;
    return { method: 'POST', path: this.#path, body, idempotencyKey: null };
  }
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`there is no metric ${name}`);
  return Number(value);
}
