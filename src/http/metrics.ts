// The page for Prometheus: what was counted elsewhere as plain numbers, given names, units and a text when somebody asks.
// No label ever holds what a client sent: routes are patterns, and there are as many series as the service has parts.

import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import type { GroupCommit } from '../batching/group-commit.ts';
import type { Histogram } from '../batching/histogram.ts';
import type { RenewalJob } from '../batching/renewal-job.ts';
import type { Store } from '../store/store.ts';
import type { RequestCounts } from './request-metrics.ts';
import type { WorkInFlight } from './work-in-flight.ts';

export interface Measured {
  readonly store: Store;
  readonly commit: GroupCommit;
  readonly renewalJob: RenewalJob;
  readonly requests: RequestCounts;
  readonly work: WorkInFlight;
}

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

export function metricsOf({ store, commit, renewalJob, requests, work }: Measured): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counts } = commit;
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  counter('scrip_batches_total', 'Batches written', () => counts.batches);
  counter(
    'scrip_batch_seconds_total',
    'Seconds from the first load of a batch to stable storage',
    () => counts.seconds,
  );
  counter('scrip_commands_total', 'Commands decided, accepted or refused', () => counts.commands);
  counter('scrip_refusals_total', 'Commands that a rule refused', () => counts.refusals);
  counter('scrip_overloads_total', 'Commands turned away since the queue was full', () => counts.overloads);
  counter('scrip_store_faults_total', 'Batches that a fault of the store befell', () => counts.faults);
  counter('scrip_renewed_end_users_total', 'End users whose due renewals were entered', () => renewalJob.renewed);
  gauge('scrip_queue_commands', 'Commands waiting for a batch', () => commit.queued);
  gauge('scrip_requests_in_flight', 'Requests being worked on, streamed lists included', () => work.requests);
  gauge('scrip_renewals_due', 'End users found due by the latest look, 256 at the most', () => renewalJob.due);
  gauge(
    'scrip_renewals_late_seconds',
    'Seconds since nothing was due: no renewal is entered later than this',
    () => renewalJob.lateMs() / 1_000,
  );
  gauge('scrip_store_ready', '1 while writes can be expected to work', () => (store.trouble() === null ? 1 : 0));
  const samples = (type: string, name: string, help: string, read: () => Sample[]) =>
    registry.registerMetric(sampled({ type, name, help, read }));
  samples('histogram', 'scrip_batch_commands', 'Commands in a batch', () =>
    histogram('scrip_batch_commands', counts.sizes),
  );
  samples('histogram', 'scrip_commit_seconds', 'Seconds from the first load of a batch to stable storage', () =>
    histogram('scrip_commit_seconds', counts.times),
  );
  samples('counter', 'scrip_store_errors_total', 'Batches that a fault befell, by kind', () =>
    Object.entries(counts.faultsByKind).map(([kind, value]) => ({ labels: { kind }, value })),
  );
  samples('counter', 'scrip_requests_total', 'Requests answered, by route and status', () => byStatus(requests));
  samples('histogram', 'scrip_request_seconds', 'Seconds from the headers of a request to its answer, by route', () =>
    [...requests.routes.values()].flatMap(({ route, seconds }) =>
      histogram('scrip_request_seconds', seconds, { route }),
    ),
  );
  samples('counter', 'scrip_problems_total', 'Requests answered with a problem, by its name', () =>
    [...requests.problems].map(([error, value]) => ({ labels: { error }, value })),
  );
  return registry;
}

/** A metric of prom-client whose samples are read when they are asked for, with nothing kept in between. */
function sampled({
  type,
  name,
  help,
  read,
}: {
  type: string;
  name: string;
  help: string;
  read: () => Sample[];
}): Metric<string> {
  const get = async () => ({ name, help, type, values: read(), aggregator: 'sum' });
  return { name, help, get, reset() {} } as unknown as Metric<string>;
}

function byStatus(requests: RequestCounts): Sample[] {
  const samples: Sample[] = [];
  for (const { route, byStatus } of requests.routes.values())
    byStatus.forEach((value, status) => {
      if (value > 0) samples.push({ labels: { route, status: String(status) }, value });
    });
  return samples;
}

/** In the form of Prometheus: each bucket counts what the ones before it count as well. A route never asked for is left out. */
function histogram(name: string, { bounds, counts, sum }: Histogram, labels: Labels = {}): Sample[] {
  let total = 0;
  const buckets = [...counts].map((count, index) => {
    total += count;
    const le = index < bounds.length ? String(bounds[index]) : '+Inf';
    return { labels: { ...labels, le }, value: total, metricName: `${name}_bucket` };
  });
  if (total === 0 && 'route' in labels) return [];
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: total, metricName: `${name}_count` },
  ];
}
