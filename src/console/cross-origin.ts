// Detects requests that another website causes a browser to send (cross-site request forgery). Checks `Sec-Fetch-Site`
// or, for older browsers, `Origin`. Browsers send at least one of these headers with every form, so a request with
// neither header does not come from a browser and is allowed.

import type { IncomingHttpHeaders } from 'node:http';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @param publicUrl Scrip's public origin; null if unknown. Behind a proxy, it can differ from `Host`. */
export function isCrossOrigin(method: string, headers: IncomingHttpHeaders, publicUrl: string | null): boolean {
  if (SAFE_METHODS.has(method)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // A browser that hides the origin of a page sends `Origin: null`.
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin);
  const scrip = publicUrl === null ? null : new URL(publicUrl);
  return from.host === scrip?.host ? from.origin !== scrip.origin : from.host !== normalizedHost(host);
}

function normalizedHost(host: string | undefined): string | null {
  return host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).host : null;
}
