// Shortens the time that clients have to send their headers, so that a test need not wait up to 15 seconds. Load this
// module before the server: `NODE_OPTIONS=--import=…`.

import { SERVER_LIMITS } from '../../src/http/limits.ts';

Object.assign(SERVER_LIMITS, { headersTimeoutMs: 5_000, connectionsCheckMs: 500 });
