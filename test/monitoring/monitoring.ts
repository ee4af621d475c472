// `npm run monitoring`: tests the files in docs/operating with a real Prometheus, in about three minutes. The script
// needs `prometheus` and `promtool` on the PATH, so it is not part of `npm test`.
//
//   check the scrape configuration and the rules ─▶ each alert fires in its test history, and not too early
//   ─▶ scrape a running Scrip with the configuration ─▶ each panel of the dashboard has data, and no alert fires
//   ─▶ kill Scrip: ScripDown fires ─▶ restart Scrip: ScripDown ends

import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newKey, ServerProcess } from '../load/server-process.ts';
import { freePort } from '../store/postgres/postgres-server.ts';
import { ALERT_CASES, alertTests } from './alert-cases.ts';

const DOCUMENTS = join(import.meta.dirname, '..', '..', 'docs', 'operating');
const RULES = join(DOCUMENTS, 'alerts.yaml');
const PORT_OF_EXAMPLE = '127.0.0.1:8080';
/** This time is long enough for three scrapes; `rate` needs two samples. */
const SCRAPED_MS = 50_000;
/**
 * The maximum wait for ScripDown. The alert fires after one minute plus the time until the next scrape and rule
 * evaluation.
 */
const ALERT_MS_MAX = 150_000;
const POLL_MS = 1_000;

const print = (line: string) => process.stdout.write(`${line}\n`);

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

class Prometheus {
  readonly #url: string;
  readonly #child: ChildProcess;

  static async start(folder: string, config: string): Promise<Prometheus> {
    const address = `127.0.0.1:${await freePort()}`;
    const options = [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    const child = spawn('prometheus', [...options, `--web.listen-address=${address}`, '--log.level=warn'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const prometheus = new Prometheus(`http://${address}`, child);
    const isReady = () =>
      fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(isReady, 'Prometheus is ready');
    return prometheus;
  }

  private constructor(url: string, child: ChildProcess) {
    this.#url = url;
    this.#child = child;
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(this.#url + path);
    const { status, data, error } = (await response.json()) as { status: string; data: unknown; error?: string };
    assert.equal(status, 'success', `${path}: ${error}`);
    return data;
  }

  async query(expression: string): Promise<number> {
    const found = await this.#get(`/api/v1/query?${new URLSearchParams({ query: expression })}`);
    return (found as { result: unknown[] }).result.length;
  }

  async firing(): Promise<readonly string[]> {
    const { alerts } = (await this.#get('/api/v1/alerts')) as {
      alerts: readonly { state: string; labels: { alertname: string }; annotations: { summary: string } }[];
    };
    return alerts
      .filter(({ state }) => state === 'firing')
      .map(({ labels, annotations }) => `${labels.alertname}: ${annotations.summary}`);
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

async function eventually(holds: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + ALERT_MS_MAX;
  while (!(await holds())) {
    assert(performance.now() < deadline, `${what}: not within ${ALERT_MS_MAX / 1_000} s`);
    await sleep(POLL_MS);
  }
}

function assertInstalled(): void {
  const folders = (process.env.PATH ?? '').split(delimiter);
  for (const program of ['prometheus', 'promtool']) {
    if (folders.some((path) => existsSync(join(path, program)))) continue;
    print(
      `This test needs ${program} on the PATH: \`apt-get install prometheus\` (Debian), \`brew install prometheus\`.`,
    );
    process.exit(1);
  }
}

async function callEverything(url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const end_user_id = randomUUID();
  const post = (path: string, fields: object) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ end_user_id, ...fields }) });
  await post('/add', { amount: 100 });
  await post('/subtract', { amount: 30 });
  await post('/subtract', { amount: 300 });
  await post('/start-cycle', { amount: 1_000 });
  await fetch(`${url}/get-active-balance?end_user_id=${end_user_id}`, { headers });
}

async function assertPanelsHaveData(prometheus: Prometheus): Promise<void> {
  const { panels } = JSON.parse(readFileSync(join(DOCUMENTS, 'grafana-dashboard.json'), 'utf8')) as { panels: Panel[] };
  const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
  for (const { title, expr } of queries) {
    const found = await prometheus.query(expr.replaceAll('$instance', '.*'));
    assert(found > 0, `the panel "${title}" has no data: ${expr}`);
  }
  print(`The dashboard works: all ${queries.length} queries of ${panels.length} panels have data.`);
}

async function watchScrip(folder: string): Promise<void> {
  const databaseUrl = `file:${join(folder, 'scrip.db')}`;
  const key = await newKey(databaseUrl);
  const port = String(await freePort());
  const start = () => ServerProcess.start(databaseUrl, { PORT: port });
  let scrip = await start();
  cpSync(RULES, join(folder, 'alerts.yaml'));
  const config = readFileSync(join(DOCUMENTS, 'prometheus.yml'), 'utf8');
  assert(config.includes(PORT_OF_EXAMPLE));
  writeFileSync(join(folder, 'prometheus.yml'), config.replace(PORT_OF_EXAMPLE, `127.0.0.1:${port}`));
  const prometheus = await Prometheus.start(folder, join(folder, 'prometheus.yml'));
  try {
    await eventually(async () => (await prometheus.query('up{job="scrip"} == 1')) === 1, 'Scrip is scraped');
    print('Prometheus scrapes Scrip.');
    for (let passedMs = 0; passedMs < SCRAPED_MS; passedMs += POLL_MS) {
      await callEverything(scrip.url, key);
      await sleep(POLL_MS);
    }
    await assertPanelsHaveData(prometheus);
    assert.deepEqual(await prometheus.firing(), [], 'no alert fires while everything works');
    await scrip.end('SIGKILL');
    const killedAt = performance.now();
    await eventually(async () => (await prometheus.firing()).length > 0, 'an alert fires');
    const firing = await prometheus.firing();
    assert.deepEqual(firing, [`ScripDown: Scrip on 127.0.0.1:${port} is down`]);
    print(`${Math.round((performance.now() - killedAt) / 1_000)} s after Scrip was killed: ${firing}.`);
    scrip = await start();
    await eventually(async () => (await prometheus.firing()).length === 0, 'the alert ends');
    print('Scrip runs again: no alert fires.');
  } finally {
    await scrip.end();
    await prometheus.stop();
  }
}

assertInstalled();
const folder = mkdtempSync(join(tmpdir(), 'scrip-monitoring-'));
try {
  print(execFileSync('promtool', ['check', 'config', join(DOCUMENTS, 'prometheus.yml')], { encoding: 'utf8' }).trim());
  writeFileSync(join(folder, 'alert-tests.json'), alertTests(RULES));
  execFileSync('promtool', ['test', 'rules', join(folder, 'alert-tests.json')], { stdio: 'inherit' });
  const tried = new Set(ALERT_CASES.map(({ alert }) => alert));
  const alerts = [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, alert]) => alert as string);
  assert.deepEqual(alerts.toSorted(), [...tried].toSorted(), 'each alert has a case');
  print(`The rules work: all ${alerts.length} alerts fire when they should, and not before.`);
  await watchScrip(folder);
  print('Monitoring works as documented.');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
