// The files that the pages of the console load: stylesheet, script and icon. Each URL contains a hash of the file's
// content, so browsers can cache the file for a year.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface AssetFile {
  readonly url: string;
  readonly contentType: string;
  readonly body: Buffer;
}

/** RFC 8246 defines `immutable`. */
export const ASSET_CACHING = 'public, max-age=31536000, immutable';

const HASH_DIGITS = 12;

export const STYLESHEET = assetFile('console.css', 'text/css; charset=utf-8');
export const SCRIPT = assetFile('console.js', 'text/javascript; charset=utf-8');
export const ICON = assetFile('icon.svg', 'image/svg+xml');

export const ASSET_FILES: readonly AssetFile[] = [STYLESHEET, SCRIPT, ICON];

function assetFile(name: string, contentType: string): AssetFile {
  const body = readFileSync(join(import.meta.dirname, name));
  const digest = createHash('sha256').update(body).digest('hex').slice(0, HASH_DIGITS);
  return { url: `/console/assets/${name.replace('.', `.${digest}.`)}`, contentType, body };
}
