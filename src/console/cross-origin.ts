// Which requests come from another site's page. A browser says so itself: in `Sec-Fetch-Site`, or where it is too old for
// that, in `Origin`. What carries neither is no browser, holds no cookie by accident, and is let through. The session
// cookie is SameSite=Lax besides.

import type { IncomingHttpHeaders } from 'node:http';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** @param publicUrl the origin at which people reach Scrip, when it is not the one that the request names in `Host` */
export function isCrossOrigin(method: string, headers: IncomingHttpHeaders, publicUrl: string | null): boolean {
  if (SAFE_METHODS.has(method)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // A page that may not be named sends `null`.
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== hostOf(host) && (publicUrl === null || from !== new URL(publicUrl).host);
}

/** As a URL has it: in small letters, and without the port that goes without saying. */
function hostOf(host: string | undefined): string | null {
  return host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).host : null;
}
