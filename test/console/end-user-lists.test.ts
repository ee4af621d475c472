// Tests the search for end users, and the lists of end users as pages and CSV files.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { MemoryConsole } from './memory-console.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PATH = `/console/end-users/${USER}`;

function add(console: MemoryConsole, amount: number, { account = 1, endUser = USER, days = 31 } = {}): void {
  console.ledger.submit({ kind: 'add', account, endUser, actor: 'key:1', amount, validityDays: days });
}

test('a search for a UUID opens the page of the end user, a search for a prefix lists the matches, and a search for other text shows an error', async () => {
  const console = await MemoryConsole.start();
  add(console, 5);
  add(console, 5, { endUser: '91c4f0aa-7d52-4b0e-8a3d-2f6b1e9c5d70' });
  assert.equal((await console.get(`/console/end-users?search=%20${USER.toUpperCase()}`)).location, PATH);
  assert.equal((await console.get(`/console/end-users?search=${USER.replaceAll('-', '')}`)).location, PATH);
  const found = (await console.get('/console/end-users?search=5F2B')).text;
  assert.match(found, new RegExp(USER));
  assert.doesNotMatch(found, /91c4f0aa/);
  assert.match((await console.get('/console/end-users?search=abc')).text, /No UUID begins with abc/);
  assert.match(
    (await console.get('/console/end-users?search=bob%3Cb%3E')).text,
    /value="bob&#60;b&#62;"[\s\S]*Use only the digits/,
  );
  assert.equal((await console.get('/console/end-users?after=invented')).location, '/console/end-users');
  assert.equal((await console.get('/console/end-users/bob')).status, 404);
  assert.equal((await console.get(`/console/end-users/${USER.toUpperCase()}`)).status, 200);
});

const LISTS: readonly (readonly [query: string, heading: RegExp, endUsers: string])[] = [
  ['', /All end users, most recently active first/, 'dbca'],
  ['?list=invented', /All end users, most recently active first/, 'dbca'],
  ['?list=balance', /highest balance first/, 'bdac'],
  ['?list=low-balance', /lowest balance first/, 'ad'],
  ['?list=low-balance&at-most=5', /value="5"/, 'a'],
  ['?list=no-credits', /with no credits left/, 'c'],
  ['?list=expiry', /credits that expire/, 'a'],
  ['?list=expiry&days=40', /value="40"/, 'adb'],
  ['?list=id', /by UUID/, 'abcd'],
];

for (const [query, heading, expected] of LISTS) {
  test(`the page /console/end-users${query} and its CSV file contain the right end users in the right order`, async () => {
    const console = await MemoryConsole.start();
    const endUserOf = (letter: string) => `${letter.repeat(8)}-3a70-4d2e-9b61-0c8f4e7a1d23`;
    for (const [letter, amount, days] of [
      ['a', 5, 7],
      ['c', 1, 1],
      ['b', 1_234_567, 31],
      ['d', 100, 30],
    ] as const) {
      add(console, amount, { endUser: endUserOf(letter), days });
      console.advance(1_000);
    }
    console.advance(DAY_MS);
    const { text } = await console.get(`/console/end-users${query}`);
    assert.match(text, heading);
    assert.match(text, /4 end users, 3 with credits/);
    const shown = text.match(/(?<=href="\/console\/end-users\/)[0-9a-f-]{36}/g) ?? [];
    assert.deepEqual(shown, [...expected].map(endUserOf));
    if (expected.includes('b')) assert.match(text, />1,234,567</);
    const csv = await console.get(`/console/end-users.csv${query}`);
    const [header, ...lines] = csv.text.trimEnd().split('\r\n');
    assert.equal(header, 'end_user_id,balance,expires_at,latest_activity');
    assert.deepEqual(lines.map((line) => line[0]).join(''), expected);
    if (expected === 'c') assert.equal(lines[0], `${endUserOf('c')},0,,2026-11-20T14:05:32.204Z`);
  });
}

test('an invalid filter for a list of end users shows an error next to its field', async () => {
  const console = await MemoryConsole.start();
  add(console, 5);
  for (const [query, error] of [
    ['low-balance&at-most=many', 'Enter a whole number, such as 100.'],
    ['expiry&days=0', 'Enter at least 1 day.'],
  ] as const) {
    const { text } = await console.get(`/console/end-users?list=${query}`);
    assert.match(text, /aria-invalid="true"/);
    assert(text.includes(`-error">${error}<`), query);
    assert.equal((await console.get(`/console/end-users.csv?list=${query}`)).location, '/console/end-users');
  }
});

test('the second page of a list of end users continues where the first page ends', async () => {
  const console = await MemoryConsole.start();
  for (let made = 0; made < 51; made++) add(console, 1, { endUser: randomUUID() });
  const first = (await console.get('/console/end-users')).text;
  const [, next] = /href="([^"]+)" rel="next"/.exec(first) ?? [];
  assert(next, 'there is a next page');
  const second = (await console.get(next.replaceAll('&#61;', '=').replaceAll('&#38;', '&'))).text;
  const shown = (text: string) => text.match(/href="\/console\/end-users\/[0-9a-f-]{36}"/g) ?? [];
  assert.equal(new Set([...shown(first), ...shown(second)]).size, 51);
  assert.equal((await console.get('/console/end-users.csv')).text.trimEnd().split('\r\n').length, 52);
});
