// Acts as a console user in a real browser, and finds links, buttons and fields by their labels.

import assert from 'node:assert/strict';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { isWellFormed } from '../../../src/accounts/api-key.ts';
import { type Visit, visit } from './browser.ts';

export const PASSWORD = 'seven green bottles on a wall';

export interface Person {
  readonly email: string;
  readonly accountName: string;
}

export class ConsoleVisitor {
  readonly url: string;
  readonly visited: Visit;

  private constructor(url: string, visited: Visit) {
    this.url = url;
    this.visited = visited;
  }

  static async arrive(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<ConsoleVisitor> {
    return new ConsoleVisitor(url, await visit(browser, options));
  }

  get page(): Page {
    return this.visited.page;
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.url}${path}`);
  }

  /** Also waits for the page that the link leads to. */
  async follow(name: string): Promise<void> {
    await this.page.getByRole('link', { name, exact: true }).first().click();
    await this.page.waitForLoadState();
  }

  /** Also waits for the page that the button leads to, if any: a click ends before that page is complete. */
  async press(name: string): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).click();
    await this.page.waitForLoadState();
  }

  async fill(label: string, text: string): Promise<void> {
    const named = new RegExp(`^${label}( \\(optional\\))?$`);
    await this.page.getByLabel(named).filter({ visible: true }).fill(text);
  }

  async signUp({ email, accountName }: Person): Promise<void> {
    await this.open('/console/sign-up');
    await this.fill('Email', email);
    await this.fill('Password', PASSWORD);
    await this.fill('Account name', accountName);
    await this.press('Sign up');
    await this.page.waitForURL(/\/console\/overview/);
  }

  async signIn({ email }: Pick<Person, 'email'>): Promise<void> {
    await this.open('/console/sign-in');
    await this.fill('Email', email);
    await this.fill('Password', PASSWORD);
    await this.press('Sign in');
    await this.page.waitForURL(/\/console\/overview/);
  }

  async createKey(name: string): Promise<string> {
    await this.follow('API keys');
    await this.fill('Name', name);
    await this.press('Create key');
    const secret = await this.page.locator('#secret').innerText();
    assert(isWellFormed(secret), 'the page shows the new key');
    return secret;
  }

  async signOut(): Promise<void> {
    await this.press('Sign out');
    await this.page.waitForURL(/\/console\/sign-in/);
  }

  text(): Promise<string> {
    return this.page.locator('main').innerText();
  }

  async leave(): Promise<void> {
    assert.deepEqual(this.visited.errors, [], 'the browser logged no error');
    await this.visited.close();
  }
}

export async function callApi(url: string, key: string, path: string, fields: object): Promise<number> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(fields),
  });
  await response.arrayBuffer();
  return response.status;
}
