// Tests that secrets are never logged, even if the database fails, and are shown only once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { someone } from '../http/running-service.ts';
import { invite, newOwner, onBothStores, onOneStore, someEmail, Visitor } from './visitor.ts';

const CANARY = 'canary sings in a coal mine 7';

onBothStores('secrets', (start) => {
  test('passwords and tokens of console users are never logged, even if the database fails', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const secrets = [CANARY, ...owner.cookies.values(), (await invite(owner, 'member')).split('/').at(-1) as string];
    const visitor = new Visitor(scrip);
    const email = someEmail();
    await visitor.signUp({ email, password: CANARY });
    await visitor.signIn(email, CANARY);
    secrets.push(...visitor.cookies.values());
    await visitor.signIn(email, `${CANARY} wrong`);
    await visitor.signIn(CANARY, CANARY);
    await visitor.post('/console/account/password', { current: `${CANARY} wrong`, password: `${CANARY} new` });
    await visitor.post('/console/sign-up', { password: CANARY }, { 'content-type': 'text/plain' });
    await sql('ALTER TABLE console_users RENAME TO console_renamed');
    for (const reply of [
      await visitor.signIn(email, CANARY),
      await visitor.signUp({ email: someEmail(), password: CANARY }),
      await owner.post('/console/account/password', { current: CANARY, password: `${CANARY} new` }),
    ]) {
      assert.equal(reply.status, 503);
      assert.match(reply.text, /Something went wrong in the console/);
      assert(!reply.text.includes('canary'));
    }
    await sql('ALTER TABLE console_renamed RENAME TO console_users');
    const log = scrip.log.join('');
    assert.match(log, /a console request failed/);
    for (const secret of secrets) assert(!log.includes(secret), secret);
    assert(!log.toLowerCase().includes('canary'));
  });
});

onOneStore('secrets', (start) => {
  test('the console shows an invitation link only once', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const secret = (await invite(owner, 'member')).split('/').at(-1) as string;
    assert(!(await owner.get('/console/members')).text.includes(secret));
  });
});

onBothStores('failure of the console tables', (start) => {
  test('while a table of the console is missing, the console returns 503 and the API works; after the table is restored, both work', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    await sql('ALTER TABLE console_sessions RENAME TO console_renamed');
    assert.equal((await owner.get('/console/account')).status, 503);
    assert.equal((await scrip.post('/add', { end_user_id: someone(), amount: 5 })).status, 200);
    assert.equal((await scrip.call('GET', '/readyz')).status, 200);
    await sql('ALTER TABLE console_renamed RENAME TO console_sessions');
    assert(await owner.isSignedIn());
  });
});
