// Tests the account page of the console: account name, sessions and color theme.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserOf } from '../../src/console/identity/sessions.ts';
import { assertGoesTo, decode, newMember, newOwner, onBothStores, onOneStore, Visitor } from './visitor.ts';

const PATH = '/console/account';
const PHONE = {
  'user-agent':
    'Mozilla/5.0 (iPhone; CPU iPhone OS 26_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1',
};

const BROWSERS: readonly (readonly [userAgent: string | undefined, name: string])[] = [
  ['Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0', 'Firefox on Linux'],
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36', 'Chrome on Windows'],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0 Safari/537.36 Edg/142.0', 'Edge on Windows'],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/26.1 Safari/605.1.15',
    'Safari on macOS',
  ],
  [PHONE['user-agent'], 'Safari on an iPhone'],
  ['curl/8.5.0', 'Unknown browser'],
  [undefined, 'Unknown browser'],
];

for (const [userAgent, name] of BROWSERS)
  test(`the list of sessions shows "${name}" for the User-Agent ${userAgent?.slice(0, 60)}`, () => {
    assert.equal(browserOf(userAgent), name);
  });

onBothStores('the account', (start) => {
  test('an owner can rename the account, and a member cannot', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip, 'Lovelace Ltd');
    const [member, other] = [await newMember(scrip, owner), await newOwner(scrip, 'Hopper Inc')];
    assertGoesTo(await owner.post(`${PATH}/name`, { name: ' Lovelace & Co ' }), `${PATH}?notice=renamed`);
    assert.match(decode((await member.get(PATH)).text), /<p class="account">Lovelace & Co</);
    assert.match((await owner.post(`${PATH}/name`, { name: ' ' })).text, /id="name-error">Enter a name/);
    assert.match((await owner.get(PATH)).text, /<code>scrip key create --account NAME<\/code>, need the new name\./);
    assert.equal((await member.post(`${PATH}/name`, { name: 'Mine' })).status, 403);
    assert.doesNotMatch((await member.get(PATH)).text, /Rename account/);
    assertGoesTo(await other.post(`${PATH}/name`, { name: 'Lovelace & Co' }), `${PATH}?notice=taken`);
    const names = (await sql('SELECT name FROM accounts ORDER BY account')).map(({ name }) => name);
    assert.equal(names[0], 'Lovelace & Co');
    assert.match(String(names[1]), /^Lovelace & Co [0-9a-f]{6}$/, 'a name that is already used gets random digits');
    assertGoesTo(await owner.post(`${PATH}/name`, { name: 'Lovelace & Co' }), `${PATH}?notice=renamed`);
    assert.equal((await sql("SELECT name FROM accounts WHERE name = 'Lovelace & Co'")).length, 1);
  });

  test('users can list and end their own sessions, but not the sessions of other users', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const member = await newMember(scrip, owner);
    const [phone, laptop] = [new Visitor(scrip, PHONE), new Visitor(scrip)];
    for (const visitor of [phone, laptop]) await visitor.signIn(owner.email);
    const page = (await owner.get(PATH)).text;
    assert.match(page, /Safari on an iPhone/);
    assert.equal(page.match(/\(this session\)/g)?.length, 1);
    const sessionsIn = (text: string) =>
      [...text.matchAll(/name="session" value="([0-9a-f]{64})"/g)].map(([, id]) => id);
    assert.equal(sessionsIn(page).length, 2);
    for (const id of sessionsIn(page)) {
      assert(page.includes(`aria-describedby="session-${id} used-${id}"`));
      for (const prefix of ['session', 'used']) assert(page.includes(` id="${prefix}-${id}"`));
    }
    assert.equal(sessionsIn((await member.get(PATH)).text).length, 0);
    const end = (visitor: Visitor, session = '') => visitor.post(`${PATH}/sessions/end`, { session });
    for (const session of sessionsIn(page)) await end(member, session);
    assert(await phone.isSignedIn());
    const [ofPhone] = /id="session-([0-9a-f]{64})">Safari on an iPhone/.exec(page)?.slice(1) ?? [];
    assertGoesTo(await end(owner, ofPhone), `${PATH}?notice=ended`);
    assert(!(await phone.isSignedIn()));
    assert((await laptop.isSignedIn()) && (await owner.isSignedIn()));
    await end(owner);
    assert(!(await laptop.isSignedIn()));
    assert((await owner.isSignedIn()) && (await member.isSignedIn()));
  });
});

onOneStore('the account', (start) => {
  test('the color theme that a user chooses applies to every page, even after the user signs out', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const themeOf = async (path: string) =>
      /<html lang="en"(?: data-theme="(\w+)")?>/.exec((await owner.get(path)).text)?.[1];
    assert.equal(await themeOf(PATH), undefined);
    const choose = (theme: string) => owner.post(`${PATH}/theme`, { theme });
    const reply = await choose('dark');
    assert.match(
      String(reply.headers['set-cookie']),
      /^scrip_theme=dark; Path=\/; HttpOnly; SameSite=Lax; Max-Age=31536000$/,
    );
    assert.equal(await themeOf('/console/end-users'), 'dark');
    await choose('"><script>');
    assert.equal(await themeOf(PATH), 'dark', 'an unknown color theme changes nothing');
    await owner.post('/console/sign-out');
    assert.equal(await themeOf('/console/sign-in'), 'dark');
    await owner.signIn(owner.email);
    await choose('system');
    assert.equal(await themeOf(PATH), undefined);
  });
});
