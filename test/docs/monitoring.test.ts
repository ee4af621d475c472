// Tests that the dashboard, the alerts and monitoring.md use only metrics and labels that /metrics contains, and that
// monitoring.md documents every metric.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'operating');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

let scrip: Scrip;
const samples = new Map<string, Set<string>>();
const families = new Set<string>();

before(async () => {
  scrip = await startScrip();
  for (const amount of [1, 5]) await scrip.post('/add', { end_user_id: someone(), amount });
  await scrip.post('/subtract', { end_user_id: someone(), amount: 1 });
  const { text } = await scrip.call('GET', '/metrics', { key: null });
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = samples.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    samples.set(name, known);
  }
  for (const [, name = ''] of text.matchAll(/^# TYPE (\w+)/gm)) families.add(name);
});
after(() => scrip.stop());

/** Prometheus adds these labels when it scrapes a target. */
const ADDED = new Set(['instance', 'job']);

function assertExpression(expression: string): number {
  const metrics = [...expression.matchAll(/\b((?:scrip|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */));
  const known = new Set(metrics.flatMap(([, name = '']) => [...(samples.get(name) ?? [])]));
  for (const [, name = '', selectors = ''] of metrics) {
    const labels = samples.get(name);
    assert(labels, `${name} is not a metric: ${expression}`);
    for (const [, label = ''] of selectors.matchAll(/(\w+)(?:=~|!~|!=|=)"/g))
      assert(labels.has(label) || ADDED.has(label), `${name} does not have the label ${label}: ${expression}`);
  }
  for (const label of grouped) assert(known.has(label) || ADDED.has(label), `${label} is not a label: ${expression}`);
  return metrics.length;
}

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

test('every panel of the Grafana dashboard queries metrics that exist', () => {
  const { panels } = JSON.parse(read('grafana-dashboard.json')) as { panels: Panel[] };
  assert(panels.length >= 15);
  for (const { title, targets } of panels) {
    assert(targets.length > 0, title);
    for (const { expr, legendFormat } of targets) {
      assert(assertExpression(expr) > 0, title);
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        assert(new RegExp(`\\bby \\([^)]*\\b${label}\\b`).test(expr) || label === 'instance', `${title}: ${label}`);
    }
  }
});

test('every alert queries metrics that exist and has a summary and a description', () => {
  const rules = read('alerts.yaml')
    .split(/^ {6}- alert: /m)
    .slice(1);
  assert(rules.length >= 10);
  for (const rule of rules) {
    const expression = /^ {8}expr: (.+)$/m.exec(rule)?.[1];
    assert(expression, rule);
    assert(assertExpression(expression) > 0 || /^up\{job="scrip"\}/.test(expression), expression);
    assert.match(rule, /^ {8}for: \d+[sm]$/m);
    assert.match(rule, /severity: (critical|warning)$/m);
    for (const name of ['summary', 'description'])
      assert(JSON.parse(new RegExp(`^ {10}${name}: (.+)$`, 'm').exec(rule)?.[1] ?? '""').length > 20, rule);
  }
});

test('monitoring.md lists every Scrip metric with its type and labels', () => {
  const rows = new Map(
    [...read('monitoring.md').matchAll(/^\| `(scrip_\w+)` +\| (\w+) +\| (.*?) *\|/gm)].map(
      ([, name = '', kind, labels]) => [
        name,
        { kind, labels: new Set([...(labels ?? '').matchAll(/`(\w+)`/g)].map(([, label]) => label)) },
      ],
    ),
  );
  const ours = [...families].filter((name) => name.startsWith('scrip_'));
  assert.deepEqual([...rows.keys()].sort(), ours.sort());
  for (const [name, { kind, labels }] of rows) {
    const isHistogram = samples.has(`${name}_count`);
    assert.equal(kind === 'histogram', isHistogram, name);
    assert.deepEqual(labels, samples.get(isHistogram ? `${name}_count` : name), name);
  }
});

test('monitoring.md shows prometheus.yml verbatim, and prometheus.yml loads the alerts and scrapes the default port', () => {
  const config = read('prometheus.yml');
  assert.equal(/```yaml\n([\s\S]*?)```/.exec(read('monitoring.md'))?.[1], config);
  assert.match(config, new RegExp(`targets: \\['127\\.0\\.0\\.1:${readConfig({}).port}'\\]`));
  assert.match(config, /^rule_files:\n {2}- alerts\.yaml$/m);
  const [, job] = /job_name: (\w+)/.exec(config) ?? [];
  assert(read('alerts.yaml').includes(`up{job="${job}"} == 0`), 'the ScripDown alert names the job');
});
