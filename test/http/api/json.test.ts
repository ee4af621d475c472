// Tests which request bodies are valid, and that Scrip never coerces, rounds, drops or guesses values.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postText, sendRaw } from '../raw-connection.ts';
import { assertFieldRefused, assertProblem, type Reply, type Scrip, someone, startScrip } from '../running-service.ts';

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

const NOT_AN_AMOUNT = [
  '"5"',
  '""',
  'true',
  'false',
  'null',
  '1.5',
  '1e-1',
  '-0',
  '0',
  '0.0',
  '-1',
  '-9007199254740992',
  '9007199254740992',
  '9007199254740993',
  '9007199254740991.4',
  '9007199254740990.9999999999999999',
  '1.0000000000000000001',
  `1.${'0'.repeat(60_000)}1`,
  '0.9999999999999999999999',
  '100000000000000000000000000000',
  '9'.repeat(400),
  '1e400',
  '[]',
  '[5]',
  '{}',
  '{"amount":5}',
];

for (const path of ['/add', '/subtract', '/start-cycle']) {
  test(`${path} accepts only whole numbers from 1 to 2^53−1 as an amount`, async () => {
    const user = someone();
    await scrip.post('/add', { end_user_id: user, amount: 1_000 });
    for (const amount of NOT_AN_AMOUNT) {
      for (const space of ['', ' ', '\n\t']) {
        const body = `{"end_user_id":"${user}","amount":${space}${amount}${space}}`;
        const reply = await scrip.call('POST', path, { body });
        assert.equal(reply.status, 422, `${body}: ${reply.text}`);
        assertFieldRefused(reply, '/amount');
      }
    }
    assert.equal((await scrip.balance(user)).active_balance, 1_000);
    assert.equal((await scrip.transactions(user)).length, 1);
  });
}

for (const amount of ['1', '2', '999999999999999', '1000000000000000', '9007199254740991']) {
  test(`an amount of ${amount} is stored exactly`, async () => {
    const user = someone();
    const reply = await scrip.call('POST', '/add', { body: `{"amount" : ${amount} , "end_user_id" : "${user}"}` });
    assert.equal(reply.text, `{"end_user_id":"${user}","amount":${amount}}`);
    const balance = await scrip.get('/get-active-balance', { end_user_id: user });
    assert(balance.text.endsWith(`"active_balance":${amount}}`), balance.text);
  });
}

const NOT_DAYS = ['"31"', 'true', '1.5', '1e-1', '0', '-0', '-1', `-1${'0'.repeat(30)}`, '[]', '{}', '[31]'];

for (const path of ['/add', '/start-cycle']) {
  test(`${path} accepts only null and whole numbers of at least 1 as validity_days`, async () => {
    const user = someone();
    for (const days of NOT_DAYS) {
      const body = `{"end_user_id":"${user}","amount":5,"validity_days":${days}}`;
      const reply = await scrip.call('POST', path, { body });
      assert.equal(reply.status, 422, `${body}: ${reply.text}`);
      assertFieldRefused(reply, '/validity_days');
    }
    assert.equal((await scrip.transactions(user)).length, 0);
  });
}

test('the error for a number that is far too large names the limit of the field', async () => {
  for (const [fields, limit] of [
    ['"amount":1e400', /\/amount must be [^"]*9007199254740991/],
    ['"amount":5,"rollover_max":1e400', /\/rollover_max must be [^"]*9007199254740991/],
    ['"amount":5,"validity_months":1e400', /\/validity_months must be [^"]*120\b/],
  ] as const) {
    const body = `{"end_user_id":"${someone()}",${fields}}`;
    assert.match((await scrip.call('POST', '/start-cycle', { body })).text, limit);
  }
});

test('on_active is refused unless it is "replace", "at_period_end" or absent', async () => {
  const user = someone();
  await scrip.post('/start-cycle', { end_user_id: user, amount: 5 });
  for (const on_active of ['refuse', 'Replace', '', true, null, 1, ['replace']]) {
    assertFieldRefused(await scrip.post('/start-cycle', { end_user_id: user, amount: 5, on_active }), '/on_active');
  }
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

const NOT_A_UUID = [
  '""',
  '"x"',
  'null',
  '5',
  '["5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23"]',
  '"5f2b1c9e3a704d2e9b610c8f4e7a1d23"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d2"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d234"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d2g"',
  '"{5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23}"',
  '"urn:uuid:5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23"',
  '" 5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23\\n"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d2\\u0000"',
  '"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d2\\u017f"',
  '"\\ud800"',
];

test('an end_user_id that is not exactly a UUID is refused', async () => {
  for (const endUser of NOT_A_UUID) {
    const reply = await scrip.call('POST', '/add', { body: `{"end_user_id":${endUser},"amount":5}` });
    assert.equal(reply.status, 422, `${endUser}: ${reply.text}`);
    assertFieldRefused(reply, '/end_user_id');
  }
});

test('a body with a duplicate field is refused', async () => {
  const user = someone();
  const fields = `"end_user_id":"${user}","amount":5`;
  for (const [twice, path] of [
    [`{${fields},"amount":500}`, '/amount'],
    [`{${fields},"amount":5}`, '/amount'],
    [`{${fields},"\\u0061mount":500}`, '/amount'],
    [`{"end_user_id":"${someone()}",${fields}}`, '/end_user_id'],
    [`{${fields},"validity_days":1,"validity_days":null}`, '/validity_days'],
    [`{${fields},"validity_days":9007199254740993,"validity_days":1}`, '/validity_days'],
  ] as const) {
    const reply = await scrip.call('POST', '/add', { body: twice });
    assert.equal(reply.status, 422, `${twice}: ${reply.text}`);
    assertFieldRefused(reply, path);
  }
  assert.equal((await scrip.transactions(user)).length, 0);
});

test('escapes in the names and values of a body are decoded', async () => {
  const user = someone();
  const escaped = [...user].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const reply = await scrip.call('POST', '/add', { body: `{"end_user_\\u0069d":"${escaped}","\\u0061mount":5}` });
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await scrip.balance(user)).active_balance, 5);
});

test('fields such as __proto__ are refused as unknown and do not change Object.prototype', async () => {
  const user = someone();
  for (const [member, path] of [
    ['"__proto__":{"amount":7,"polluted":1}', '/__proto__'],
    ['"__proto__":null', '/__proto__'],
    ['"constructor":{"prototype":{"polluted":1}}', '/constructor'],
    ['"\\u005f_proto__":{"polluted":1}', '/__proto__'],
  ] as const) {
    const fields = `"end_user_id":"${user}"`;
    const post = await scrip.call('POST', '/add', { body: `{${fields},"amount":5,${member}}` });
    assert.equal(post.status, 422, `${member}: ${post.text}`);
    assertFieldRefused(post, path);
    const inPlace = await scrip.call('POST', '/add', { body: `{${fields},${member}}` });
    assertFieldRefused(inPlace, '/amount');
    const get = await scrip.call('GET', '/get-active-balance', { body: `{${fields},${member}}` });
    assertFieldRefused(get, path);
  }
  assertFieldRefused(await scrip.get('/get-active-balance', { end_user_id: user, ['__proto__']: 'x' }), '/__proto__');
  assertFieldRefused(
    await scrip.get('/get-active-balance', { end_user_id: user, constructor: 'x' } as never),
    '/constructor',
  );
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.equal((await scrip.transactions(user)).length, 0);
});

test('a field such as toString in the body of a GET request is refused as unknown, and is not compared with the query string', async () => {
  const refusalOf = async (field: string) =>
    (await scrip.call('GET', '/get-active-balance', { body: { end_user_id: user, [field]: 1 } })).body.errors;
  const [unknown] = await refusalOf('limits');
  for (const field of ['constructor', 'toString', 'hasOwnProperty']) {
    assert.deepEqual(await refusalOf(field), [{ path: `/${field}`, message: unknown?.message }]);
  }
});

test('the path of an invalid field is a JSON Pointer, in which ~ and / are escaped', async () => {
  const reply = await scrip.post('/stop-cycle', { end_user_id: someone(), 'a/b~c': 1 });
  assert.deepEqual(
    reply.body.errors.map(({ path }) => path),
    ['/a~1b~0c'],
  );
});

test('the response to a request with many invalid fields lists 20 of them, whichever rule the fields violate', async () => {
  const [numbers, user] = [Array.from({ length: 30 }, (_, index) => index), someone()];
  const query = numbers.map((number) => `f${number}=1&f${number}=2`).join('&');
  for (const [method, path, body] of [
    ['POST', '/add', `{${numbers.map((number) => `"f${number}":1`).join()}}`],
    ['POST', '/add', `{${numbers.map(() => '"f":1').join()}}`],
    ['POST', '/add', `{${numbers.map((number) => `"f${number}":1.5`).join()}}`],
    ['GET', `/get-holds?end_user_id=${user}&${query}`, undefined],
  ] as const) {
    const reply = await scrip.call(method, path, body === undefined ? {} : { body });
    assertProblem(reply, 'InvalidField', 422);
    assert.equal(reply.body.errors.length, 20, `${method} ${path}`);
    assert.equal(String(reply.body.detail).split(';').length, 20);
  }
});

function assertInvalidJson(reply: Reply, name: string): void {
  assert.equal(reply.status, 400, `${name}: ${reply.text}`);
  assertProblem(reply, 'InvalidJson', 400);
}

const user = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const NOT_JSON: readonly (readonly [name: string, body: string | Uint8Array])[] = [
  ['an empty body', ''],
  ['a body of spaces', '  \n'],
  ['half an object', '{"amount":5'],
  ['two objects', '{}{}'],
  ['a trailing comma', `{"end_user_id":"${user}","amount":5,}`],
  ['single quotes', `{'end_user_id':'${user}','amount':5}`],
  ['names without quotes', `{end_user_id:"${user}",amount:5}`],
  ['a comment', `{"end_user_id":"${user}",/* */"amount":5}`],
  ['a leading zero', `{"end_user_id":"${user}","amount":05}`],
  ['a plus sign', `{"end_user_id":"${user}","amount":+5}`],
  ['a hexadecimal number', `{"end_user_id":"${user}","amount":0x5}`],
  ['NaN', `{"end_user_id":"${user}","amount":NaN}`],
  ['Infinity', `{"end_user_id":"${user}","amount":Infinity}`],
  ['a control character in a string', `{"end_user_id":"${user}","amount":5,"a":"\u0001"}`],
  ['a form', `end_user_id=${user}&amount=5`],
  ['a byte order mark', `\ufeff{"end_user_id":"${user}","amount":5}`],
  ['UTF-16', Buffer.from(`{"end_user_id":"${user}","amount":5}`, 'utf16le')],
  ['a byte that is invalid in UTF-8', Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')])],
  ['an overlong form in UTF-8', Buffer.from([...Buffer.from('{"a":"'), 0xc0, 0xaf, ...Buffer.from('"}')])],
  ['an unpaired surrogate in UTF-8', Buffer.from([...Buffer.from('{"a":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])],
  ['deeply nested brackets that are not closed', '['.repeat(60_000)],
];

for (const [name, body] of NOT_JSON) {
  test(`a request body is refused with InvalidJson: ${name}`, async () => {
    for (const path of ['/add', '/subtract', '/start-cycle', '/stop-cycle']) {
      assertInvalidJson(await scrip.call('POST', path, { body }), `${path} with ${name}`);
    }
  });
}

test('a JSON body that is not an object is refused', async () => {
  for (const body of ['[]', '5', '"x"', 'true', 'null', `[{"end_user_id":"${user}","amount":5}]`, '1.0', '-0']) {
    const reply = await scrip.call('POST', '/add', { body });
    assert.equal(reply.status, 422, `${body}: ${reply.text}`);
    assertProblem(reply, 'InvalidField', 422);
  }
});

test('a deeply nested value is refused like any other value of the wrong type', async () => {
  const depth = 10_000;
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const value = `${open.repeat(depth)}1${close.repeat(depth)}`.slice(0, 60_000);
    const whole = `${open.repeat(5_000)}1${close.repeat(5_000)}`;
    assertFieldRefused(
      await scrip.call('POST', '/add', { body: `{"end_user_id":"${user}","amount":${whole}}` }),
      '/amount',
    );
    assertInvalidJson(await scrip.call('POST', '/add', { body: `{"amount":${value}` }), 'cut off');
  }
});

test('an unpaired surrogate in a field name is refused with a response that is valid JSON and valid UTF-8', async () => {
  const reply = await sendRaw(scrip, postText(scrip, '/add', `{"end_user_id":"${user}","amount":5,"\\ud800":1}`));
  assert.equal(reply.status, 422);
  assert.equal(reply.body.errors[0]?.path, '/\ud800');
});

test('after requests with invalid bodies, a valid request is still accepted', async () => {
  const someUser = someone();
  assert.equal((await scrip.post('/add', { end_user_id: someUser, amount: 5 })).status, 200);
  assert.equal((await scrip.balance(someUser)).active_balance, 5);
});
