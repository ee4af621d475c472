// Describes a valid or invalid request, and converts it into bytes.

/**
 * The expected response:
 * - `take`: 200, or a refusal by the ledger
 * - `refuse`: any 4xx
 * - `break`: any 4xx, or a closed connection without a response; the server processes no further bytes
 * - `either`: 200 or any 4xx
 * - `form`: 200, 303 or any 4xx
 */
export type Verdict = 'take' | 'refuse' | 'break' | 'either' | 'form';

export interface Draft {
  method: string;
  target: string;
  version: string;
  headers: [name: string, value: string][];
  body: Buffer;
  framing: 'length' | 'chunked' | 'none';
  verdict: Verdict | null;
  isCutShort: boolean;
}

const CRLF = '\r\n';

export function written(draft: Draft): Buffer {
  const { method, target, version, headers, body, framing, isCutShort } = draft;
  const framed = framing === 'chunked' ? chunked(body) : body;
  const framingHeaders: [string, string][] =
    framing === 'none'
      ? []
      : framing === 'chunked'
        ? [['Transfer-Encoding', 'chunked']]
        : [['Content-Length', String(body.length)]];
  const lines = [...headers, ...framingHeaders].map(([name, value]) => `${name}: ${value}`);
  const start = `${method} ${target} ${version}`.trimEnd();
  const bytes = Buffer.concat([Buffer.from([start, ...lines, '', ''].join(CRLF), 'latin1'), framed]);
  return isCutShort ? bytes.subarray(0, bytes.length - 1) : bytes;
}

function chunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += 4_096) {
    const part = body.subarray(at, at + 4_096);
    parts.push(Buffer.from(`${part.length.toString(16)}${CRLF}`), part, Buffer.from(CRLF));
  }
  return Buffer.concat([...parts, Buffer.from(`0${CRLF}${CRLF}`)]);
}
