// The metrics of events and webhooks.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { PacedJob } from '../../batching/paced-job.ts';

export interface MeasuredEvents {
  /** The job that derives events. */
  readonly deriving: Pick<PacedJob, 'lateMs'>;
  /** Null until webhooks are delivered. */
  readonly webhooks: () => MeasuredWebhooks | null;
}

interface MeasuredWebhooks {
  /** The number of attempts to deliver an event, by result. */
  readonly attempts: { readonly delivered: number; readonly failed: number };
  readonly pausedEndpoints: number;
  oldestAgeMs(): number;
}

export function collectEventMetrics(registry: Registry, { deriving, webhooks }: MeasuredEvents): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number) => {
    const metric: Gauge = new Gauge({ name, help, registers, collect: () => metric.set(read()) });
  };
  gauge(
    'scrip_event_lag_seconds',
    'Seconds since the derivation of events last had nothing to do',
    () => deriving.lateMs() / 1_000,
  );
  gauge(
    'scrip_webhook_oldest_event_seconds',
    'Age of the oldest event that this process has yet to deliver; 0 if there is none',
    () => (webhooks()?.oldestAgeMs() ?? 0) / 1_000,
  );
  gauge('scrip_webhook_paused_endpoints', 'Webhook endpoints that are paused', () => webhooks()?.pausedEndpoints ?? 0);
  new Counter({
    name: 'scrip_webhook_deliveries_total',
    help: 'Attempts to deliver an event to an endpoint, by result',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      const { delivered = 0, failed = 0 } = webhooks()?.attempts ?? {};
      this.inc({ result: 'delivered' }, delivered);
      this.inc({ result: 'failed' }, failed);
    },
  });
}
