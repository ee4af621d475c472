// Breaks the events of a server on purpose, or shortens the delays between retries. Load this module before all others:
// `NODE_OPTIONS=--import=…`.
//
//   SHORT_RETRIES=yes                 retries failed deliveries within a second
//   WEAKENED_EVENTS=early-position    stores the position of an endpoint before the events up to it are delivered
//   WEAKENED_EVENTS=late-events       stores the position of the derivation before it stores the events up to it

import { substitute } from '../load/substituted-module.ts';

export type Weakness = 'early-position' | 'late-events';

const { SHORT_RETRIES: shortRetries, WEAKENED_EVENTS: weakness } = process.env;

function replace(importer: string, specifier: string, replacement: string): void {
  substitute({ importer, specifier, replacement: new URL(replacement, import.meta.url) });
}

if (shortRetries === 'yes') replace('/webhook-job.ts', '/retry-schedule.ts', './short-retries.ts');
if (weakness === 'early-position') replace('/webhook-job.ts', '/delivery-queue.ts', './early-position.ts');
if (weakness === 'late-events') replace('/writer/writer.ts', '/journal/events.ts', './late-events.ts');
