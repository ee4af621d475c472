// Tests that owners can list, invite, change and remove members, and that members cannot.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sessions } from '../../src/console/identity/sessions.ts';
import {
  assertGoesTo,
  decode,
  invite,
  newMember,
  newOwner,
  onBothStores,
  onOneStore,
  PASSWORD,
  type Started,
  Visitor,
} from './visitor.ts';

async function idOf(sql: Started['sql'], email: string): Promise<string> {
  const [row] = await sql(`SELECT id FROM console_users WHERE email = '${email}'`);
  return String(row?.id);
}

const changeRole = (visitor: Visitor, id: string, role: string) =>
  visitor.post(`/console/members/${id}/role`, { role });
const remove = (visitor: Visitor, id: string) => visitor.post(`/console/members/${id}/remove`);

onBothStores('members of an account', (start) => {
  test('an owner who becomes a member while a request is processed can neither invite people nor change roles', async (t) => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    const bob = await newMember(scrip, ada, 'owner');
    const [adaId, bobId] = [await idOf(sql, ada.email), await idOf(sql, bob.email)];
    const viewer = Sessions.prototype.viewer;
    t.mock.method(Sessions.prototype, 'viewer', async function (this: Sessions, token: string) {
      const found = await viewer.call(this, token);
      await sql(`UPDATE console_members SET role = 'member' WHERE user_id = '${bobId}'`);
      return found;
    });
    const requests = [
      () => bob.post('/console/members/invite', { role: 'owner' }),
      () => changeRole(bob, bobId, 'owner'),
      () => remove(bob, adaId),
    ];
    for (const request of requests) {
      await sql(`UPDATE console_members SET role = 'owner' WHERE user_id = '${bobId}'`);
      assert.equal((await request()).status, 403);
    }
    assert.deepEqual(await sql('SELECT * FROM console_invitations WHERE used_at IS NULL'), []);
    assert.equal((await sql("SELECT * FROM console_members WHERE role = 'owner'")).length, 1);
  });

  test('an account keeps at least one owner, even if its two owners try to leave or become members at the same time', async () => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    const adaId = await idOf(sql, ada.email);
    assert.equal((await changeRole(ada, adaId, 'member')).status, 200);
    assert.equal((await remove(ada, adaId)).status, 200);
    const bob = await newMember(scrip, ada, 'owner');
    const bobId = await idOf(sql, bob.email);
    const replies = await Promise.all([changeRole(ada, adaId, 'member'), remove(bob, bobId)]);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 303]);
    assert.equal((await sql("SELECT * FROM console_members WHERE role = 'owner'")).length, 1);
  });

  test('the invitations that an owner created stop working when the owner is removed or becomes a member', async () => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    for (const [change, notice] of [
      [(id: string) => changeRole(ada, id, 'member'), 'member'],
      [(id: string) => remove(ada, id), 'removed'],
    ] as const) {
      const bob = await newMember(scrip, ada, 'owner');
      const [kept, withdrawn] = [await invite(ada, 'member'), await invite(bob, 'owner')];
      const page = decode((await ada.get('/console/members')).text);
      for (const { email } of [ada, bob]) assert(page.includes(`data-label="Created by" class="by">${email}<`));
      assertGoesTo(await change(await idOf(sql, bob.email)), `/console/members?notice=${notice}`);
      const { text } = await ada.get(`/console/members?notice=${notice}`);
      assert.match(text, /role="status">[^<]+ Pending invitations that this person created no longer work\.</);
      const visitor = new Visitor(scrip);
      assert.equal((await visitor.post(withdrawn, { email: bob.email, password: PASSWORD })).status, 404);
      assert.equal((await visitor.get(kept)).status, 200, "another owner's invitation still works");
    }
  });

  test("removing a member deletes the user and the user's sessions, and the email address can be used to sign up again", async () => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    const bob = await newMember(scrip, ada);
    await remove(ada, await idOf(sql, bob.email));
    for (const table of ['console_members', 'console_sessions', 'console_users'])
      assert.equal((await sql(`SELECT * FROM ${table}`)).length, 1, table);
    await bob.signUp({ email: bob.email });
    assertGoesTo(await bob.signIn(bob.email), '/console/overview');
  });
});

onOneStore('members of an account', (start) => {
  test('the list of members is shown only to owners of the account', async () => {
    const { scrip } = await start();
    const [ada, other] = [await newOwner(scrip, 'Ada'), await newOwner(scrip, 'Other')];
    const bob = await newMember(scrip, ada);
    const page = decode((await ada.get('/console/members')).text);
    assert(page.includes(ada.email) && page.includes(bob.email) && !page.includes(other.email));
    assert.equal((await bob.get('/console/members')).status, 403);
  });

  test('a GET request to the action URL of a form redirects to the page with the form and changes nothing', async () => {
    const { scrip } = await start();
    const ada = await newOwner(scrip);
    for (const form of ['invite', 'withdraw-invitations', 'u1/role'])
      assertGoesTo(await ada.get(`/console/members/${form}`), '/console/members');
    const user = '/console/end-users/5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
    for (const form of ['add', 'subtract', 'start-cycle', 'stop-cycle'])
      assertGoesTo(await ada.get(`${user}/${form}`), user);
    for (const form of ['refund', 'release'])
      assertGoesTo(await ada.get(`${user}/transactions/7/${form}`), `${user}/transactions/7`);
    assertGoesTo(await ada.get('/console/account/sessions/end'), '/console/account');
    assertGoesTo(await ada.get('/console/webhooks/1/deliveries/2/resend'), '/console/webhooks/1/deliveries/2');
    assertGoesTo(await ada.get('/console/sign-out'), '/console');
    assert.equal(await ada.isSignedIn(), true, 'a GET request does not sign out');
    assert.equal((await ada.get(`${user}/else`)).status, 404);
  });

  test("a change to a member's role applies from the member's next request", async () => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    const bob = await newMember(scrip, ada);
    assertGoesTo(await changeRole(ada, await idOf(sql, bob.email), 'owner'), '/console/members?notice=owner');
    assert.equal((await bob.get('/console/members')).status, 200);
    assertGoesTo(await changeRole(bob, await idOf(sql, ada.email), 'member'), '/console/members?notice=member');
    assert.equal((await ada.get('/console/members')).status, 403);
    assert.equal((await changeRole(bob, await idOf(sql, ada.email), 'admin')).status, 200);
  });

  test('owners who make themselves members, or remove themselves, see a confirmation', async () => {
    const { scrip, sql } = await start();
    const ada = await newOwner(scrip);
    const [bob, eve] = [await newMember(scrip, ada), await newMember(scrip, ada)];
    for (const { email } of [bob, eve]) await changeRole(ada, await idOf(sql, email), 'owner');
    assertGoesTo(await changeRole(bob, await idOf(sql, bob.email), 'member'), '/console/account?notice=role');
    assert.match((await bob.get('/console/account?notice=role')).text, /Role changed\. You are now a member\./);
    assertGoesTo(await remove(eve, await idOf(sql, eve.email)), '/console/sign-in?notice=left');
    assert.match((await eve.get('/console/sign-in?notice=left')).text, /You have left the account/);
  });

  test('an owner cannot see or change members of another account', async () => {
    const { scrip, sql } = await start();
    const [ada, eve] = [await newOwner(scrip, 'Ada'), await newOwner(scrip, 'Eve')];
    const bob = await newMember(scrip, ada);
    const id = await idOf(sql, bob.email);
    for (const reply of [await remove(eve, id), await changeRole(eve, id, 'owner'), await remove(eve, 'unknown')]) {
      assert.equal(reply.status, 404);
      assert.match(reply.text, /This account has no such member/);
      assert(!reply.text.includes(bob.email));
    }
    assertGoesTo(await eve.post('/console/members/withdraw-invitations'), '/console/members?notice=all-withdrawn');
    assert(await bob.isSignedIn());
    assert.equal((await bob.get('/console/members')).status, 403);
  });
});
