// Every page of the console with sample data, on a server of its own that sends the headers of the real one.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ASSET_CACHING, ASSET_FILES } from '../../src/console/assets/asset-files.ts';
import { CONTENT_SECURITY_POLICY } from '../../src/console/layout.ts';
import { apiKeysPage } from '../../src/console/pages/api-keys.ts';
import { endUserPage } from '../../src/console/pages/end-user.ts';
import { endUsersPage } from '../../src/console/pages/end-users.ts';
import { errorPage } from '../../src/console/pages/error.ts';
import { keyCreatedPage } from '../../src/console/pages/key-created.ts';
import { overviewPage } from '../../src/console/pages/overview.ts';
import { revokeKeyPage } from '../../src/console/pages/revoke-key.ts';
import {
  apiKeysView,
  END_USERS,
  endUserView,
  NOW,
  overviewView,
  SECRET,
  strangerView,
  unusedOverview,
  VIEWER,
} from './sample-views.ts';

const POLICY = Object.entries(CONTENT_SECURITY_POLICY)
  .map(([name, sources]) => `${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${sources.join(' ')}`)
  .join('; ');
const SEEN = { viewer: VIEWER, notice: null };
const API = 'https://credits.lumen.example';
const LIST = {
  search: '',
  searchError: null,
  endUsers: END_USERS,
  recent: END_USERS.slice(0, 5),
  next: 'later',
  isFirst: true,
};
const REFUSED = {
  change: 'add',
  entered: {
    values: { amount: '1,000', validity_days: '0', note: 'Ticket 4711 <b>' },
    errors: { amount: 'Write digits only, without separators: 1000.', validity_days: 'At least 1 day.' },
  },
} as const;

const FIRST_KEY = apiKeysView().keys[0];
if (FIRST_KEY === undefined) throw new Error('there are sample keys');

export const SAMPLE_PAGES: Readonly<Record<string, string>> = {
  overview: overviewPage(overviewView(), SEEN),
  'overview-unused': overviewPage(unusedOverview(), SEEN),
  'end-users': endUsersPage(LIST, SEEN),
  'end-users-last': endUsersPage({ ...LIST, search: '5f2b', recent: [], isFirst: false, next: null }, SEEN),
  'end-users-none': endUsersPage({ ...LIST, endUsers: [], recent: [], next: null }, SEEN),
  'end-users-not-found': endUsersPage({ ...LIST, search: 'abc', endUsers: [], recent: [], next: null }, SEEN),
  'end-users-bad-search': endUsersPage(
    { ...LIST, search: 'bob', searchError: 'A UUID has hexadecimal digits.', endUsers: [], recent: [], next: null },
    SEEN,
  ),
  'end-user': endUserPage(endUserView(), { ...SEEN, notice: 'The credits were added.' }),
  'end-user-refused': endUserPage(endUserView({ forms: { ...endUserView().forms, refused: REFUSED } }), SEEN),
  'end-user-older': endUserPage(endUserView({ isLatest: false, overTime: null, older: null }), SEEN),
  'end-user-stranger': endUserPage(strangerView(), SEEN),
  'api-keys': apiKeysPage(apiKeysView(), SEEN),
  'api-keys-refused': apiKeysPage(
    apiKeysView({ refused: { values: { name: '', scope: 'read' }, errors: { name: 'Give the key a name.' } } }),
    SEEN,
  ),
  'api-keys-none': apiKeysPage(apiKeysView({ keys: [] }), SEEN),
  'api-keys-member': apiKeysPage(apiKeysView({ mayChange: false }), SEEN),
  'key-created': keyCreatedPage({ name: 'Production backend', scope: 'write', secret: SECRET, apiUrl: API }, SEEN),
  'revoke-key': revokeKeyPage(FIRST_KEY, NOW, SEEN),
  error: errorPage(
    {
      title: 'There is nothing here',
      detail: 'The page may have moved, or the address is mistyped.',
      requestId: 'mi7r-1',
    },
    SEEN,
  ),
  'error-signed-out': errorPage(
    { title: 'That did not work', detail: 'Try again.', requestId: null },
    { viewer: null },
  ),
};

export interface SampleServer {
  readonly url: string;
  close(): void;
}

export async function serveSamplePages(): Promise<SampleServer> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://sample').pathname;
    const asset = ASSET_FILES.find(({ url }) => url === path);
    const html = SAMPLE_PAGES[path.slice(1)];
    if (asset) {
      response.writeHead(200, { 'content-type': asset.contentType, 'cache-control': ASSET_CACHING }).end(asset.body);
    } else if (html !== undefined) {
      response
        .writeHead(200, {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
        })
        .end(html);
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
