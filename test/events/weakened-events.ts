// Breaks the event processing of a server on purpose, or shortens the delays between webhook retries. Load this module
// before all others: `NODE_OPTIONS=--import=…`.
//
//   SHORT_RETRIES=yes                 retries failed deliveries within a second
//   WEAKENED_EVENTS=early-position    records events as delivered before the endpoint has received them
//   WEAKENED_EVENTS=late-events       records postings as processed before it stores their events

import { substitute } from '../load/substituted-module.ts';

export type Weakness = 'early-position' | 'late-events';

const { SHORT_RETRIES: shortRetries, WEAKENED_EVENTS: weakness } = process.env;

function replace(importer: string, specifier: string, replacement: string): void {
  substitute({ importer, specifier, replacement: new URL(replacement, import.meta.url) });
}

if (shortRetries === 'yes') replace('/webhook-job.ts', '/retry-schedule.ts', './short-retries.ts');
if (weakness === 'early-position') replace('/webhook-job.ts', '/delivery-queue.ts', './early-position.ts');
if (weakness === 'late-events') replace('/writer/writer.ts', '/journal/events.ts', './late-events.ts');
