// Registers all metrics except those of HTTP requests. Most metrics store no values: each scrape reads the current
// values. Labels never contain client input, and the number of series is bounded.

import { collectDefaultMetrics, Gauge, Histogram, type Registry } from 'prom-client';
import { BATCH_COMMANDS_MAX, type GroupCommit } from '../../batching/group-commit.ts';
import type { RenewalJob } from '../../batching/renewal-job.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { FairShare } from '../admission/fair-share.ts';
import { CreditMetrics } from './credit-metrics.ts';
import { collectEventMetrics, type MeasuredEvents } from './event-metrics.ts';
import { ReadMetrics } from './read-metrics.ts';

export interface Measured extends MeasuredEvents {
  readonly version: string;
  readonly ledger: LedgerStore;
  readonly commit: GroupCommit;
  readonly renewalJob: RenewalJob;
  readonly inFlight: FairShare;
}

export function collectMetrics(registry: Registry, measured: Measured): void {
  const { version, ledger, commit, renewalJob, inFlight } = measured;
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const build = {
    name: 'scrip_build_info',
    help: 'Always 1; the label is the version of Scrip',
    labelNames: ['version'],
  };
  new Gauge({ ...build, registers }).set({ version }, 1);
  const metrics = new ReadMetrics(registry);
  collectEventMetrics(metrics, measured);
  const credits = new CreditMetrics(registry);
  commit.onAccepted = (command, accepted) => credits.count(command, accepted);
  const { counts } = commit;
  metrics.counter('scrip_commands_total', 'Commands that were accepted or refused', () => counts.commands);
  metrics.counter('scrip_refusals_total', 'Commands refused by a rule of the ledger', () => counts.refusals);
  metrics.counter(
    'scrip_renewed_end_users_total',
    "How many times the background job stored an end user's due renewals or hold lapses",
    () => renewalJob.settled,
  );
  metrics.gauge('scrip_queue_commands', 'Commands in the write queue', () => commit.queued);
  metrics.gauge(
    'scrip_requests_in_flight',
    'Requests in flight, including lists that are being streamed',
    () => inFlight.total,
  );
  metrics.gauge(
    'scrip_renewals_due',
    'End users with due renewals or hold lapses at the last check; the count stops at 1024',
    () => renewalJob.due,
  );
  metrics.gauge(
    'scrip_renewal_lag_seconds',
    'Seconds since a check last found no overdue renewals or hold lapses',
    () => renewalJob.lateMs() / 1_000,
  );
  metrics.gauge('scrip_store_ready', '1 if the store accepts writes, else 0', () =>
    ledger.trouble() === null ? 1 : 0,
  );
  metrics.gauge(
    'scrip_store_unreachable_shards',
    'Citus shards whose worker cannot be reached',
    () => ledger.unreachable().length,
  );
  metrics.counters(
    {
      name: 'scrip_store_errors_total',
      help: 'Batches that failed with a store error, by kind of error',
      label: 'kind',
    },
    () => counts.faultsByKind,
  );
  const sizes = new Histogram({
    name: 'scrip_batch_commands',
    help: 'Commands per batch',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, BATCH_COMMANDS_MAX],
    registers,
  });
  const durations = new Histogram({
    name: 'scrip_commit_duration_seconds',
    help: 'Time to load, process and durably commit a batch',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers,
  });
  commit.onBatch = (commands, seconds) => {
    sizes.observe(commands);
    durations.observe(seconds);
  };
}
