// The stylesheet, the script and the icon. Their names change with their content, so a browser keeps them for good.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { ASSET_CACHING, ASSET_FILES } from '../assets/asset-files.ts';
import { errorPage } from '../pages/error.ts';
import { pathField, sendPage } from './console-ports.ts';

export function sendAsset(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const wanted = `/console/assets/${pathField(request, 'name')}`;
  const file = ASSET_FILES.find(({ url }) => url === wanted);
  if (file === undefined) {
    const title = 'There is nothing here';
    return sendPage(reply, errorPage({ title, detail: 'No such file.', requestId: null }, { viewer: null }), 404);
  }
  return reply.header('content-type', file.contentType).header('cache-control', ASSET_CACHING).send(file.body);
}
