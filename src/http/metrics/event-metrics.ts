// The metrics of events and webhooks.

import type { PacedJob } from '../../batching/paced-job.ts';
import type { WebhookJob } from '../../events/webhooks/webhook-job.ts';
import type { ReadMetrics } from './read-metrics.ts';

export interface MeasuredEvents {
  readonly deriving: Pick<PacedJob, 'lateMs'>;
  /** Returns null until the delivery of webhooks has started. */
  readonly webhooks: () => Pick<WebhookJob, 'attempts' | 'pausedEndpoints' | 'oldestAgeMs' | 'stalledMs'> | null;
}

export function collectEventMetrics(metrics: ReadMetrics, { deriving, webhooks }: MeasuredEvents): void {
  metrics.gauge(
    'scrip_event_lag_seconds',
    'Seconds since the last check that found no events left to derive',
    () => deriving.lateMs() / 1_000,
  );
  metrics.gauge(
    'scrip_webhook_oldest_event_seconds',
    'Seconds since this process read its oldest undelivered event from the event log; 0 if there is no such event',
    () => (webhooks()?.oldestAgeMs() ?? 0) / 1_000,
  );
  metrics.gauge(
    'scrip_webhook_stalled_seconds',
    'Seconds since this process could last read and store everything that it needs to send webhooks',
    () => (webhooks()?.stalledMs() ?? 0) / 1_000,
  );
  metrics.gauge(
    'scrip_webhook_paused_endpoints',
    'Webhook endpoints that are paused',
    () => webhooks()?.pausedEndpoints ?? 0,
  );
  metrics.counters(
    {
      name: 'scrip_webhook_deliveries_total',
      help: 'Attempts to deliver an event to an endpoint, by result',
      label: 'result',
    },
    () => webhooks()?.attempts ?? { delivered: 0, failed: 0 },
  );
}
