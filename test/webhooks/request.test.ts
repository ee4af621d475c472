// Tests webhook requests, in particular to endpoints that misbehave and to addresses that are not allowed.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { urlProblem } from '../../src/events/webhooks/addresses.ts';
import { type RequestOptions, type RequestResult, WebhookRequests } from '../../src/events/webhooks/request.ts';
import { type Answer, Receiver, RULES, withStatus } from './webhook-fixture.ts';

interface Sent extends RequestResult {
  readonly receiver: Receiver;
}

function requests(t: TestContext, options: Partial<RequestOptions> = {}): WebhookRequests {
  const made = new WebhookRequests({ rules: RULES, userAgent: 'Scrip/1.2.3', timeoutMs: 300, ...options });
  t.after(() => made.close());
  return made;
}

function post(sender: WebhookRequests, url: string, signal = new AbortController().signal): Promise<RequestResult> {
  return sender.send({ url, headers: { 'webhook-id': 'evt_1' }, body: '{"a":"é"}', signal });
}

async function sendTo(t: TestContext, answer: Answer, options: Partial<RequestOptions> = {}): Promise<Sent> {
  const receiver = await Receiver.start();
  t.after(() => receiver[Symbol.asyncDispose]());
  receiver.answer = answer;
  return { ...(await post(requests(t, options), receiver.url('/hook?x=1'))), receiver };
}

async function rawServer(t: TestContext, onConnection: Parameters<Server['on']>[1]): Promise<string> {
  const server = createServer().on('connection', onConnection).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

test('a webhook has a JSON body, and its User-Agent header contains the version of Scrip', async (t) => {
  const { receiver, ...result } = await sendTo(t, withStatus(204));
  assert.deepEqual(
    { ...result, durationMs: 0 },
    { kind: 'delivered', status: 204, error: null, answer: '', durationMs: 0 },
  );
  const [{ body, path, headers }] = receiver.received as [(typeof receiver.received)[0]];
  assert.deepEqual([body, path], ['{"a":"é"}', '/hook?x=1']);
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['user-agent'], 'Scrip/1.2.3');
  assert.equal(headers['content-length'], '10');
});

for (const status of [400, 404, 410, 429, 500, 503])
  test(`a webhook fails if the endpoint responds with status ${status}, and Scrip stores the beginning of the response body`, async (t) => {
    const { kind, status: seen, error, answer } = await sendTo(t, withStatus(status, 'x'.repeat(2_000)));
    assert.deepEqual([kind, seen, error], ['failed', status, `The endpoint responded with status ${status}.`]);
    assert.equal(answer, 'x'.repeat(1_024));
  });

test('a webhook fails if the endpoint responds with a redirect, and the redirect is not followed', async (t) => {
  const { kind, error, receiver } = await sendTo(t, (_request, response) => {
    response.writeHead(302, { location: '/other' }).end();
  });
  assert.deepEqual(
    [kind, error],
    ['failed', 'The endpoint responded with a redirect (302). Scrip does not follow redirects.'],
  );
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/hook?x=1'],
  );
});

test('if the endpoint of a webhook responds with status 304, Scrip does not report a redirect', async (t) => {
  const { error } = await sendTo(t, (_request, response) => void response.writeHead(304).end());
  assert.equal(error, 'The endpoint responded with status 304.');
});

test('a webhook fails if the endpoint does not respond in time', async (t) => {
  const { kind, status, error, durationMs } = await sendTo(t, () => {});
  assert.deepEqual([kind, status, error], ['failed', null, 'There was no response within 0.3 seconds.']);
  assert(durationMs >= 290 && durationMs < 3_000, `${durationMs} ms`);
});

test('a webhook succeeds if a slow response arrives before the timeout', async (t) => {
  const { kind } = await sendTo(t, (_request, response) => void setTimeout(150).then(() => response.end()));
  assert.equal(kind, 'delivered');
});

test('a webhook times out if the endpoint sends its headers byte by byte', async (t) => {
  const url = await rawServer(t, (socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\nslow: ');
    const timer = setInterval(() => socket.write('x'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  const { error, durationMs } = await post(requests(t), url);
  assert.equal(error, 'There was no response within 0.3 seconds.');
  assert(durationMs < 3_000, `${durationMs} ms`);
});

test('a webhook fails if the endpoint sends more than ten interim responses, in one write or without end', async (t) => {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  const many = Array.from({ length: 10_000 }, () => hint).join('');
  let written = 0;
  const flooding = await rawServer(t, (socket) => {
    const flood = () => {
      while (!socket.destroyed && socket.write(many)) written += many.length;
    };
    socket.on('error', () => {}).on('drain', flood);
    socket.once('data', flood);
  });
  const at = (text: string) =>
    rawServer(t, (socket) => void socket.on('error', () => {}).once('data', () => socket.write(text)));
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
  const sender = requests(t, { timeoutMs: 10_000 });
  assert.equal((await post(sender, await at(hint.repeat(10) + ok))).kind, 'delivered');
  for (const url of [await at(hint.repeat(11)), await at(many), flooding]) {
    const { kind, error } = await post(sender, url);
    assert.deepEqual([kind, error], ['failed', 'The endpoint sent more than 10 interim (1xx) responses.']);
  }
  assert(written < 64 * 1_048_576, `${written} bytes were written`);
});

test('the status decides whether a webhook succeeds, even if the response body never ends', async (t) => {
  for (const [status, kind] of [
    [200, 'delivered'],
    [500, 'failed'],
  ] as const) {
    let written = 0;
    const result = await sendTo(t, (_request, response) => {
      response.writeHead(status);
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384))) written += 16_384;
        if (!response.destroyed) written += 16_384;
      };
      response.on('drain', write).on('error', () => {});
      write();
    });
    assert.deepEqual([result.kind, result.status], [kind, status]);
    assert.equal(result.answer.length, 1_024);
    assert(written < 64 * 1_048_576, `${written} bytes were read`);
  }
});

test('the status decides whether a webhook succeeds, even if the response body stalls', async (t) => {
  const result = await sendTo(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('some');
    },
    { timeoutMs: 200 },
  );
  assert.deepEqual([result.kind, result.answer], ['delivered', 'some']);
});

test('in the response to a webhook, bytes that PostgreSQL cannot store as text are replaced', async (t) => {
  const { answer } = await sendTo(t, (_request, response) => response.end(Buffer.from([0x61, 0, 0xff, 0x62])));
  assert.equal(answer, 'a��b');
});

test('the error of a failed webhook says whether the connection was refused, was closed or failed', async (t) => {
  const closing = await rawServer(t, (socket) => void socket.once('data', () => socket.destroy()));
  const nonsense = await rawServer(t, (socket) => void socket.once('data', () => socket.end('nonsense\r\n\r\n')));
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n';
  const upgrading = await rawServer(t, (socket) => void socket.once('data', () => socket.write(upgrade)));
  for (const [url, sentence] of [
    [closing, /^The endpoint closed the connection without a response\.$/],
    ['http://127.0.0.1:1/', /^The endpoint refused the connection\.$/],
    [nonsense, /^The connection to the endpoint failed \(HPE_/],
    [upgrading, /^(The connection to the endpoint failed|The endpoint responded with status 101)/],
  ] as const) {
    const { kind, error } = await post(requests(t), url);
    assert.equal(kind, 'failed');
    assert.match(error ?? '', sentence);
  }
});

test('if the endpoint closes a reused connection, the webhook succeeds on a new connection', async (t) => {
  let connections = 0;
  const url = await rawServer(t, (socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      socket.once('data', () => socket.destroy());
    });
  });
  const sender = requests(t);
  for (let count = 1; count <= 3; count++) {
    assert.equal((await post(sender, url)).kind, 'delivered');
    assert.equal(connections, count);
  }
});

test('later webhooks to an endpoint reuse its connection', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver[Symbol.asyncDispose]());
  const ports = new Set<number | undefined>();
  receiver.answer = (_request, response) => {
    ports.add(response.socket?.remotePort);
    response.end();
  };
  const sender = requests(t);
  for (let count = 0; count < 3; count++) assert.equal((await post(sender, receiver.url())).kind, 'delivered');
  assert.equal(ports.size, 1);
});

test('a webhook in flight can be canceled', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver[Symbol.asyncDispose]());
  receiver.answer = () => {};
  const abort = new AbortController();
  const result = post(requests(t, { timeoutMs: 60_000 }), receiver.url(), abort.signal);
  await setTimeout(20);
  abort.abort();
  assert.equal((await result).error, 'The attempt was canceled.');
});

const NOT_PUBLIC = [
  ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '169.254.169.254', '0.0.0.0', '255.255.255.255'],
  ...['224.0.0.1', '192.0.2.1', '[::]', '[fe80::1]', '[fd00::1]', '[fd00:ec2::254]', '[ff02::1]', '[64:ff9b::a00:1]'],
  ...[
    '[::ffff:10.0.0.1]',
    '[::ffff:169.254.169.254]',
    '[2002:a00:1::]',
    '[::127.0.0.1]',
    '[::2]',
    '[1::1]',
    '[1fff:ffff::]',
    '[4000::]',
    '[e000::1]',
    '[2001:db8::1]',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
  ],
];

for (const host of NOT_PUBLIC)
  test(`no webhook is sent to the address ${host}`, async (t) => {
    const url = `https://${host}/`;
    assert.equal(urlProblem(url, RULES), 'The IP address of the endpoint is not public.');
    assert.equal((await post(requests(t), url)).error, 'The IP address of the endpoint is not public.');
  });

test('a setting can allow webhooks to private addresses, but no setting allows link-local addresses', () => {
  const rules = { allowPrivate: true, allowLoopback: false };
  for (const host of ['10.0.0.1', '[fd00::1]', '127.0.0.1', '[::ffff:192.168.0.1]', 'localhost'])
    assert.equal(urlProblem(`https://${host}/`, rules), null, host);
  for (const host of ['169.254.169.254', '[fe80::1]', '[::ffff:169.254.169.254]', '0.0.0.0'])
    assert.notEqual(urlProblem(`https://${host}/`, rules), null, host);
});

test('webhooks to loopback addresses are allowed only for development', () => {
  const rules = { allowPrivate: false, allowLoopback: false };
  for (const host of [
    '127.0.0.1',
    '127.1.2.3',
    '[::1]',
    'localhost',
    'a.localhost',
    'LOCALHOST.',
    '[::ffff:127.0.0.1]',
  ]) {
    assert.equal(urlProblem(`http://${host}:8080/`, RULES), null, host);
    assert.notEqual(urlProblem(`http://${host}:8080/`, rules), null, host);
    assert.notEqual(urlProblem(`https://${host}/`, rules), null, host);
  }
});

test('a webhook URL with a public address must begin with https://, and no webhook URL may contain a password or a fragment', () => {
  for (const url of [
    'https://example.com/hook?x=1',
    'https://example.com:8443/',
    'https://1.1.1.1/',
    'https://[2606:4700::1111]/',
    'https://[3fff:ffff::1]/',
    'https://[2000::]/',
  ])
    assert.equal(urlProblem(url, RULES), null, url);
  const rules = { allowPrivate: false, allowLoopback: false };
  for (const [url, sentence] of [
    ['http://example.com/', 'The URL must begin with https://.'],
    ['http://1.1.1.1/', 'The URL must begin with https://.'],
    ['https://user:secret@example.com/', 'The URL must not contain a user name or password.'],
    ['https://example.com/#part', 'The URL must not contain a fragment (#…).'],
    ['ftp://example.com/', 'The URL must begin with https://.'],
    ['example.com', 'The URL must begin with https://.'],
    ['https://example.com:99999/', 'The URL is not valid. Check the host name and the port.'],
    [`https://example.com/${'ä'.repeat(400)}`, 'The URL must have at most 2048 characters after URL encoding.'],
  ] as const)
    assert.equal(urlProblem(url, rules), sentence);
});

test('if webhooks to loopback addresses are allowed, the error for an invalid URL says that http:// is allowed for a loopback address', () => {
  const begin = 'The URL must begin with https:// (or http:// for a loopback address)';
  for (const rules of [RULES, { allowPrivate: true, allowLoopback: false }]) {
    assert.equal(urlProblem('http://localhost/', rules), null);
    assert.equal(urlProblem('http://example.com/', rules), `${begin}.`);
    assert.equal(urlProblem('example.com', rules), `${begin}.`);
  }
});

test('a webhook to a host name is refused if the name has no address, or if any of its addresses is not public', async (t) => {
  const answers = [['10.0.0.1'], ['1.1.1.1', '169.254.169.254'], ['::ffff:127.0.0.1', '10.0.0.1'], []];
  for (const addresses of answers) {
    const sender = requests(t, { resolve: () => Promise.resolve(addresses) });
    assert.match((await post(sender, 'https://hooks.example.com/')).error ?? '', /is not public|has no IP address/);
  }
});

test('a webhook is sent to the address that was checked, and the address of each new connection is checked again', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver[Symbol.asyncDispose]());
  let lookups = 0;
  // The second lookup returns a private address, so the first request would fail if it made two lookups.
  const resolve = () => Promise.resolve(lookups++ === 0 ? ['127.0.0.1'] : ['10.0.0.1']);
  const sender = requests(t, { resolve });
  const url = `http://hooks.localhost:${receiver.port}/`;
  assert.equal((await post(sender, url)).kind, 'delivered');
  assert.equal(lookups, 1);
  // Without an open connection, the next request looks up the host name again.
  sender.close();
  assert.equal(
    (await post(sender, url)).error,
    'The URL must begin with https:// (or http:// for a loopback address).',
  );
  assert.equal(receiver.received.length, 1);
});

test('a webhook to a host name that cannot be resolved fails with an error message', async (t) => {
  const resolve = () => Promise.reject(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }));
  const { error } = await post(requests(t, { resolve }), 'https://hooks.example.com/');
  assert.equal(error, 'The host name of the endpoint could not be resolved.');
});
