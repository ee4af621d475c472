// For each alert, defines a history of metrics, a time at which the alert does not fire, and a time at which it does.
// The histories use the notation of `promtool test rules`, with one sample every 15 seconds: `0+5x8` is nine samples,
// from 0 to 40 in steps of five.

export interface AlertCase {
  readonly alert: string;
  /** If no `up` series is given, Scrip counts as up. */
  readonly series: Readonly<Record<string, string>>;
  readonly quietAt: string;
  readonly firingAt: string;
}

const JOB = 'job="scrip",instance="a"';
const UP = `up{${JOB}}`;

export const ALERT_CASES: readonly AlertCase[] = [
  { alert: 'ScripDown', series: { [UP]: '1x4 0x20' }, quietAt: '2m', firingAt: '2m30s' },
  // If the scrape job has a different name or no target, Prometheus has no `up` series for Scrip.
  { alert: 'ScripDown', series: { 'up{job="other",instance="a"}': '1x20' }, quietAt: '45s', firingAt: '1m15s' },
  { alert: 'ScripNotReady', series: { [`scrip_store_ready{${JOB}}`]: '1x4 0x20' }, quietAt: '1m15s', firingAt: '2m' },
  {
    alert: 'ScripInvariantViolation',
    series: { [`scrip_store_errors_total{${JOB},kind="Internal"}`]: '0x8 1x20' },
    quietAt: '2m',
    firingAt: '2m30s',
  },
  {
    alert: 'ScripOutcomeUnknown',
    series: { [`scrip_store_errors_total{${JOB},kind="OutcomeUnknown"}`]: '0x8 1x20' },
    quietAt: '2m',
    firingAt: '2m30s',
  },
  {
    alert: 'ScripOverloaded',
    series: { [`scrip_problems_total{${JOB},error="Overloaded"}`]: '0+5x40' },
    quietAt: '1m',
    firingAt: '3m',
  },
  {
    alert: 'ScripQueueHigh',
    series: { [`scrip_queue_commands{${JOB}}`]: '0x4 3000x20' },
    quietAt: '2m',
    firingAt: '3m',
  },
  {
    alert: 'ScripServerErrors',
    series: {
      [`scrip_requests_total{${JOB},route="/add",status="200"}`]: '0+95x80',
      [`scrip_requests_total{${JOB},route="/add",status="503"}`]: '0+5x80',
    },
    quietAt: '4m',
    firingAt: '7m',
  },
  {
    alert: 'ScripSlowCommits',
    series: {
      [`scrip_commit_duration_seconds_bucket{${JOB},le="0.25"}`]: '0+90x80',
      [`scrip_commit_duration_seconds_bucket{${JOB},le="0.5"}`]: '0+100x80',
      [`scrip_commit_duration_seconds_bucket{${JOB},le="+Inf"}`]: '0+100x80',
    },
    quietAt: '9m',
    firingAt: '12m',
  },
  {
    alert: 'ScripSlowRequests',
    series: {
      [`scrip_request_duration_seconds_bucket{${JOB},route="/add",le="0.5"}`]: '0+90x80',
      [`scrip_request_duration_seconds_bucket{${JOB},route="/add",le="1"}`]: '0+100x80',
      [`scrip_request_duration_seconds_bucket{${JOB},route="/add",le="+Inf"}`]: '0+100x80',
    },
    quietAt: '9m',
    firingAt: '12m',
  },
  {
    alert: 'ScripRenewalLag',
    series: { [`scrip_renewal_lag_seconds{${JOB}}`]: '0+15x20' },
    quietAt: '2m',
    firingAt: '3m',
  },
  {
    alert: 'ScripEventsLate',
    series: { [`scrip_event_lag_seconds{${JOB}}`]: '0+15x60' },
    quietAt: '6m',
    firingAt: '8m',
  },
  {
    alert: 'ScripWebhooksLate',
    series: { [`scrip_webhook_oldest_event_seconds{${JOB}}`]: '800+15x60' },
    quietAt: '6m',
    firingAt: '8m',
  },
  {
    alert: 'ScripWebhooksStalled',
    series: { [`scrip_webhook_stalled_seconds{${JOB}}`]: '0+15x60' },
    quietAt: '5m',
    firingAt: '7m',
  },
  {
    alert: 'ScripShardsUnreachable',
    series: { [`scrip_store_unreachable_shards{${JOB}}`]: '0x4 8x20' },
    quietAt: '1m30s',
    firingAt: '3m',
  },
  {
    alert: 'ScripWebhookPaused',
    series: { [`scrip_webhook_paused_endpoints{${JOB}}`]: '1x60' },
    quietAt: '4m',
    firingAt: '6m',
  },
  {
    alert: 'ScripEventLoopLag',
    series: { [`nodejs_eventloop_lag_p99_seconds{${JOB}}`]: '0.3x40' },
    quietAt: '4m',
    firingAt: '6m',
  },
  {
    alert: 'ScripFileDescriptors',
    series: { [`process_open_fds{${JOB}}`]: '900x40', [`process_max_fds{${JOB}}`]: '1000x40' },
    quietAt: '4m',
    firingAt: '6m',
  },
  {
    alert: 'ScripUnauthorizedRequests',
    series: { [`scrip_problems_total{${JOB},error="Unauthorized"}`]: '0+100x80' },
    quietAt: '9m',
    firingAt: '16m',
  },
];

/** Returns JSON, which `promtool` can read because JSON is valid YAML. */
export function alertTests(rulesFile: string): string {
  const tests = ALERT_CASES.map(({ alert, series, quietAt, firingAt }) => {
    const isUpGiven = Object.keys(series).some((name) => name.startsWith('up{'));
    const all = isUpGiven ? series : { [UP]: '1x80', ...series };
    const firing = 'count by (alertname) (ALERTS{alertstate="firing"})';
    return {
      interval: '15s',
      input_series: Object.entries(all).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        { expr: firing, eval_time: quietAt, exp_samples: [] },
        { expr: firing, eval_time: firingAt, exp_samples: [{ labels: `{alertname="${alert}"}`, value: 1 }] },
      ],
    };
  });
  return JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '15s', tests }, null, 2);
}
