// Makes a server leak memory and file descriptors, and slows the server down. The soak test uses this server as a
// control. This file must be loaded before all other modules (`NODE_OPTIONS=--import=…`).

import { subscribe } from 'node:diagnostics_channel';
import { openSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const KEPT_BYTES = 48 * 1_024;
const REQUESTS_A_DESCRIPTOR = 50;
const SLOWER_MS_A_REQUEST = 0.0003;

const kept: Buffer[] = [];

if (isMainThread && process.env.LEAKING === 'yes') {
  subscribe('http.server.request.start', () => {
    kept.push(Buffer.alloc(KEPT_BYTES, 1));
    if (kept.length % REQUESTS_A_DESCRIPTOR === 0) openSync('/dev/null', 'r');
    const until = performance.now() + kept.length * SLOWER_MS_A_REQUEST;
    while (performance.now() < until);
  });
}
