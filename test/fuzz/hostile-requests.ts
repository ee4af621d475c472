// Makes whole requests as bytes, each with the expected response. HTTP syntax errors come from fixed lists, because the
// correct response to random bytes is unknown.

import type { Random } from '../load/random.ts';
import { type Fields, type Operation, validFields } from './contract.ts';
import type { HostileBodies } from './hostile-bodies.ts';
import { hostileQuery } from './hostile-queries.ts';
import { type Draft, type Verdict, written } from './request-bytes.ts';

export interface HostileRequest {
  readonly bytes: Buffer;
  readonly verdict: Verdict;
  readonly operation: Operation | null;
  readonly fields: Fields | null;
  /** Whether the last byte is missing. If it is, the client must close its side of the connection to get a response. */
  readonly isCutShort: boolean;
}

const PATHS: Readonly<Record<Operation, string>> = {
  add: '/add',
  subtract: '/subtract',
  refund: '/refund',
  'start-cycle': '/start-cycle',
  'stop-cycle': '/stop-cycle',
  hold: '/hold',
  capture: '/capture',
  release: '/release',
  'preview-change': '/preview-change',
  read: '/get-active-balance',
};
const OPERATIONS: readonly Operation[] = [
  ...(['add', 'add', 'subtract', 'subtract', 'refund', 'start-cycle', 'stop-cycle'] as const),
  ...(['start-cycle', 'preview-change', 'hold', 'hold', 'capture', 'release', 'read'] as const),
];

export class HostileRequests {
  readonly #random: Random;
  readonly #bodies: HostileBodies;
  readonly #key: string;
  readonly #cookie: string;

  constructor(random: Random, bodies: HostileBodies, secrets: { readonly key: string; readonly cookie: string }) {
    this.#random = random;
    this.#bodies = bodies;
    this.#key = secrets.key;
    this.#cookie = secrets.cookie;
  }

  /** Only the last request of a batch may be broken. */
  batch(user: string): HostileRequest[] {
    const random = this.#random;
    if (random.chance(0.04)) return [this.#form(user)];
    if (random.chance(0.06)) return [this.#read(user)];
    if (!random.chance(0.1)) return [this.#one(user)];
    const batch: HostileRequest[] = [];
    for (let count = 2 + random.below(4); batch.length < count; ) {
      const request = this.#one(user);
      batch.push(request);
      if (request.verdict === 'break' || request.verdict === 'either' || request.isCutShort) break;
    }
    return batch;
  }

  #read(user: string): HostileRequest {
    const draft = this.#draft('read', false, user);
    Object.assign(draft, { target: hostileQuery(this.#random, user), body: Buffer.alloc(0), framing: 'none' });
    return { bytes: written(draft), verdict: 'either', operation: 'read', fields: null, isCutShort: false };
  }

  #one(user: string): HostileRequest {
    const random = this.#random;
    const operation = random.pick(OPERATIONS);
    const isHostile = random.chance(0.75);
    const draft = this.#draft(operation, isHostile, user);
    if (random.chance(isHostile ? 0.15 : 0.6)) this.#tamper(draft, user);
    const fields = validFields(operation, draft.body);
    const verdict =
      draft.verdict === null || draft.verdict === 'take' ? this.#plainVerdict(draft, fields) : draft.verdict;
    const wouldTake = verdict === 'take' || verdict === 'either';
    return {
      bytes: written(draft),
      verdict,
      operation,
      fields: wouldTake ? fields : null,
      isCutShort: draft.isCutShort,
    };
  }

  #plainVerdict({ method, body }: Draft, fields: Fields | null): Verdict {
    // These requests have no query string, so a GET request without a body names no end user.
    return fields === null || (method === 'GET' && body.length === 0) ? 'refuse' : 'take';
  }

  #draft(operation: Operation, isHostile: boolean, user: string): Draft {
    const random = this.#random;
    return {
      method: operation === 'read' ? 'GET' : 'POST',
      target: (random.chance(0.1) ? '/v1' : '') + PATHS[operation],
      version: 'HTTP/1.1',
      headers: [
        ['Host', 'scrip'],
        ['Authorization', `Bearer ${this.#key}`],
        ['Content-Type', random.chance(0.9) ? 'application/json' : 'application/json; charset=utf-8'],
      ],
      body: isHostile ? this.#bodies.hostile(operation, user) : this.#bodies.plain(operation, user),
      framing: random.chance(0.9) ? 'length' : 'chunked',
      verdict: null,
      isCutShort: false,
    };
  }

  #tamper(draft: Draft, user: string): void {
    const tamperings: readonly ((draft: Draft) => void)[] = [
      (draft) => this.#wrongHeaders(draft),
      (draft) => this.#wrongHeaders(draft),
      (draft) => this.#oddHeaders(draft),
      (draft) => this.#wrongTarget(draft),
      (draft) => this.#wrongMethod(draft),
      (draft) => this.#brokenHead(draft),
      (draft) => this.#smuggle(draft, user),
      (draft) => this.#query(draft, user),
      (draft) => this.#cutShort(draft),
    ];
    this.#random.pick(tamperings)(draft);
  }

  #wrongHeaders(draft: Draft): void {
    const random = this.#random;
    const without = (name: string) => {
      draft.headers = draft.headers.filter(([other]) => other !== name);
    };
    switch (random.below(9)) {
      case 0:
        without('Authorization');
        break;
      case 1:
        without('Authorization');
        draft.headers.push(['Authorization', random.pick(WRONG_CREDENTIALS).replace('KEY', this.#key)]);
        break;
      case 2:
        draft.headers.push(['Authorization', `Bearer ${this.#key}`]);
        break;
      case 3:
        if (draft.body.length === 0) return;
        without('Content-Type');
        if (random.chance(0.8)) draft.headers.push(['Content-Type', random.pick(WRONG_TYPES)]);
        break;
      case 4:
        if (draft.body.length === 0) return;
        draft.headers.push(['Content-Encoding', random.pick(['gzip', 'br', 'identity, gzip', 'x'])]);
        break;
      case 5:
        if (!takesKey(draft)) return;
        draft.headers.push(['Idempotency-Key', random.pick(['', 'x'.repeat(256), 'caf\u00e9', 'a\tb'])]);
        break;
      case 6:
        if (!takesKey(draft)) return;
        draft.headers.push(['Idempotency-Key', 'a'], ['idempotency-key', random.pick(['a', 'b'])]);
        break;
      case 7:
        draft.headers.push(['X-Large', 'x'.repeat(16_384 + random.below(4_000))]);
        draft.verdict = 'break';
        break;
      default:
        draft.headers.push(['Expect', random.pick(['a-miracle', '200-ok'])]);
        draft.verdict = 'break';
    }
    draft.verdict ??= 'refuse';
  }

  #oddHeaders(draft: Draft): void {
    const random = this.#random;
    draft.verdict = 'either';
    const odd: readonly (() => void)[] = [
      () => draft.headers.push(...Array.from({ length: 400 }, (_, index): [string, string] => [`X-${index}`, 'y'])),
      () => draft.headers.push(['Host', 'other']),
      () => draft.headers.push(['X-Odd', 'caf\u00e9 \u00ff']),
      () => draft.headers.push(['Connection', random.pick(['close', 'keep-alive', 'upgrade', 'x, close'])]),
      () => draft.headers.push(['Upgrade', 'websocket'], ['Connection', 'Upgrade']),
      () => draft.headers.push(['Content-Type', 'application/json']),
      () => draft.headers.push(['X-HTTP-Method-Override', 'DELETE'], ['X-Forwarded-Host', 'x'], ['Forwarded', 'for=x']),
      () => draft.headers.push(['traceparent', random.pick(['00-0-0-0', '', 'x'.repeat(3_000)])]),
      () => draft.headers.push(['Cookie', random.pick(['=', ';;;', `scrip=${'x'.repeat(3_000)}`])]),
      () => draft.headers.push(['Range', 'bytes=0-1'], ['If-None-Match', '*'], ['Accept', 'text/html']),
      () => {
        draft.headers = draft.headers.map(([name, value]) => [random.chance(0.5) ? name.toUpperCase() : name, value]);
      },
      () => {
        draft.version = random.pick(['HTTP/1.0', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', '']);
      },
    ];
    random.pick(odd)();
  }

  #wrongTarget(draft: Draft): void {
    draft.verdict = 'either';
    const { target } = draft;
    draft.target = this.#random.pick([
      `http://scrip${target}`,
      `http://other.example${target}`,
      `${target}/`,
      `/${target}`,
      target.toUpperCase(),
      target.replace('/', '/%2e/'),
      target.replace('a', '%61'),
      target.replace('t', '%74'),
      `${target}#x`,
      `${target};x=1`,
      `${target}%00`,
      `${target}/%zz`,
      `/../${target}`,
      '*',
      '/',
      `/${'x'.repeat(9_000)}`,
      `/problems/${'%ff'.repeat(20)}`,
      '/console/nothing',
      '/docs/../../etc/passwd',
      '/docs/static/..%2f..%2fpackage.json',
    ]);
  }

  #wrongMethod(draft: Draft): void {
    draft.verdict = 'refuse';
    draft.method = this.#random.pick(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'QUERY', 'PROPFIND', 'LOCK', 'TRACE']);
  }

  #brokenHead(draft: Draft): void {
    draft.verdict = 'break';
    const broken: readonly (() => Partial<Draft>)[] = [
      () => ({ method: this.#random.pick(['SPEND', 'P\u00d6ST', 'post', '', 'PO ST']) }),
      () => ({ version: this.#random.pick(['HTTP/9.9', 'HTTX/1.1', 'http/1.1']) }),
      () => ({ target: this.#random.pick(['/a dd', '/add\u00e9', '/add\0', '']) }),
      () => ({ headers: draft.headers.filter(([name]) => name !== 'Host') }),
      ...BROKEN_HEADERS.map((header) => () => ({ headers: [...draft.headers, header] })),
    ];
    Object.assign(draft, this.#random.pick(broken)());
  }

  /**
   * Appends a second request to the body of the first. HTTP parsers could disagree on where the first request ends, so
   * the server must process neither request.
   */
  #smuggle(draft: Draft, user: string): void {
    const length = String(draft.body.length);
    const hidden = this.#bodies.plain('add', user);
    const inner = `POST /add HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${this.#key}\r\nContent-Type: application/json\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`;
    const shapes: readonly [string, string][][] = [
      [
        ['Content-Length', length],
        ['Transfer-Encoding', 'chunked'],
      ],
      [
        ['Transfer-Encoding', 'chunked'],
        ['Content-Length', length],
      ],
      [
        ['Content-Length', length],
        ['Content-Length', '0'],
      ],
      [['Content-Length', `${length}, ${length}`]],
      [['Content-Length', `+${length}`]],
      [['Content-Length', `-${length}`]],
      [['Content-Length', `0x${draft.body.length.toString(16)}`]],
      [['Content-Length', `${length} 0`]],
      [['Content-Length', '99999999999999999999999']],
      [['Content-Length ', length]],
      [['Transfer-Encoding', 'xchunked']],
      [['Transfer-Encoding', 'chunked, identity']],
      [['Transfer-Encoding', 'identity, chunked']],
      [['Transfer-Encoding', 'gzip, chunked']],
      [['Transfer-Encoding ', 'chunked']],
      [['Transfer-Encoding', '\u000bchunked']],
      [
        ['Transfer-Encoding', 'chunked'],
        ['Transfer-Encoding', 'identity'],
      ],
    ];
    draft.verdict = 'break';
    draft.framing = 'none';
    draft.headers.push(...this.#random.pick(shapes));
    const isChunked = this.#random.chance(0.5);
    draft.body = Buffer.from(`${isChunked ? '0\r\n\r\n' : draft.body.toString('latin1')}${inner}`, 'latin1');
  }

  #query(draft: Draft, user: string): void {
    const query = this.#random.pick([
      `end_user_id=${user}`,
      `end_user_id=${user}&end_user_id=${user}`,
      `end_user_id[]=${user}`,
      `%65nd_user_id=${user}`,
      `end_user_id=${user}%00`,
      `end_user_id=${user}+`,
      'end_user_id',
      'amount=5',
      '__proto__=x',
      '&&&=',
      '%',
      `x=${'y'.repeat(5_000)}`,
      '?',
      `end_user_id=${user}&limit=1`,
    ]);
    draft.target += `?${query}`;
    draft.verdict = draft.method === 'GET' || query === '&&&=' ? 'either' : 'refuse';
    if (draft.method === 'GET' && this.#random.chance(0.6)) {
      draft.body = Buffer.alloc(0);
      draft.framing = 'none';
    }
  }

  #cutShort(draft: Draft): void {
    draft.verdict = 'break';
    draft.isCutShort = true;
  }

  #form(user: string): HostileRequest {
    const random = this.#random;
    const operation = random.pick(['add', 'subtract', 'start-cycle', 'stop-cycle'] as const);
    const amount = random.pick(FORM_NUMBERS);
    const [validity, rollover_max] = [random.pick(FORM_NUMBERS), random.pick(FORM_NUMBERS)];
    const unit = random.pick(['days', 'months', '', 'x']);
    const on_active = random.pick(['', 'replace', 'at_period_end']);
    // If a form changes the response to a balance request, the fuzzer expects one more transaction in the list.
    // Scheduling a plan would change this response but not the list, so no form confirms a change at the end of the
    // period.
    const confirmed = on_active === 'at_period_end' ? '' : random.pick(['', 'yes']);
    const note = random.pick(['', 'a note', '\u0000', '\ud800', 'x'.repeat(5_000), '<script>', '%']);
    const plan = { validity, unit, rollover_max, on_active, confirmed };
    const fields = new URLSearchParams({ amount, ...plan, note }).toString();
    const body = random.pick([
      fields,
      fields,
      fields,
      `${fields}&amount=3`,
      fields.replaceAll('=', '%3d'),
      `__proto__=x&${fields}`,
      `${fields}&note=%ff%fe`,
      `amount=${'%31'.repeat(20_000)}`,
      '&'.repeat(5_000),
      '%',
      '',
    ]);
    const who = random.pick([user, user, user, user.toUpperCase(), 'x', '%00', '..', `${user}%20`, '%zz']);
    const type = random.pick(['application/x-www-form-urlencoded', 'application/x-www-form-urlencoded', 'text/plain']);
    const head = `POST /console/end-users/${who}/${operation} HTTP/1.1\r\nHost: scrip\r\nCookie: ${this.#cookie}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`;
    return { bytes: Buffer.from(head + body), verdict: 'form', operation, fields: null, isCutShort: false };
  }
}

/** A preview writes nothing, so Scrip ignores its idempotency key. */
function takesKey({ method, target }: Draft): boolean {
  return method === 'POST' && !target.includes(PATHS['preview-change']);
}

const BROKEN_HEADERS: readonly [name: string, value: string][] = [
  ['X-Bad', 'a\0b'],
  ['Bad Name', 'x'],
  ['', 'x'],
  ['X-Folded', 'a\r\n b'],
  ['X-Bare', 'a\nX-Other: b'],
  ['X-Return', 'a\rb'],
  [' X-First', 'x'],
];
const WRONG_CREDENTIALS = [
  '',
  'Bearer',
  'Bearer ',
  'Basic KEY',
  'KEY',
  'Bearer KEYx',
  'Bearer KEY KEY',
  'Bearer scrip_write_x',
  'Bearer \u00e9',
];
const WRONG_TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/jsonp',
  'multipart/form-data',
  '',
  '/',
  'application/xml',
];
const FORM_NUMBERS = [
  '1',
  '5',
  '',
  '0',
  '-1',
  '1.5',
  '1e3',
  '007',
  ' 3 ',
  '9007199254740991',
  '9007199254740992',
  '1'.repeat(60),
  '\u0661',
  'x',
  '1,000',
];
