// The banner on every page of a ledger with a test clock, and the page on which members move the clock.

import { html } from 'ghtml';
import { DAY_MS, INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
import { momentUtc } from '../figures.ts';
import { type PageContext, page, USER_INPUT } from '../layout.ts';
import { type FormState, field, formError } from './form-field.ts';

export const TEST_CLOCK_PATH = '/console/test-clock';

const MAIN = '<main id="content" tabindex="-1">';

/**
 * @param now the time of the test clock; null if the ledger has none
 * @param url the page to which the browser returns after the user submits the banner's form
 */
export function withTestClock(page: string, now: Instant | null, url: string): string {
  if (now === null) return page;
  // Every page of a signed-in user has this field, in the form that signs the user out.
  const [userInput = null] = USER_INPUT.exec(page) ?? [];
  // The replacement is a function, because `$` has a special meaning in a replacement string.
  return page.replace(MAIN, () => MAIN + banner(now, url, userInput));
}

function banner(now: Instant, url: string, userInput: string | null): string {
  return html`<aside class="test-clock" aria-label="Test clock">
<p><strong>Test clock: !${momentUtc(now)}</strong> <span>Time in this ledger stands still until you move the clock.</span></p>
!${userInput === null || url.startsWith(TEST_CLOCK_PATH) ? '' : bannerForm(now, url, userInput)}
</aside>`;
}

function bannerForm(now: Instant, url: string, userInput: string): string {
  return html`<form method="post" action="${TEST_CLOCK_PATH}">!${userInput}
!${startFields(now, url)}
<label for="test-clock-days">Days</label> <input class="input" id="test-clock-days" name="days" type="text" inputmode="numeric" autocomplete="off" required value="1">
<button class="button secondary small" type="submit">Advance</button> <a href="${TEST_CLOCK_PATH}">Move to a date and time</a>
</form>`;
}

/**
 * The entered days are added to `from`, the time when the page was loaded, so submitting the form twice moves the clock
 * only once.
 */
function startFields(now: Instant, url: string): string {
  // Otherwise, the page would show the notice of an earlier change again.
  const back = url.replace(/\?notice=.*/, '');
  return html`<input type="hidden" name="from" value="${now}"><input type="hidden" name="back" value="${back}">`;
}

export interface TestClockView {
  readonly now: Instant;
  readonly refused: { readonly form: 'days' | 'to'; readonly state: FormState } | null;
}

export function testClockPage({ now, refused }: TestClockView, context: PageContext): string {
  const stateOf = (form: 'days' | 'to') => (refused?.form === form ? refused.state : null);
  const days = { id: 'days', name: 'days', label: 'Days', initial: '1', isWholeNumber: true } as const;
  const to = {
    id: 'to',
    name: 'to',
    label: 'Date and time (UTC)',
    type: 'datetime-local',
    initial: new Date(Math.min(now + DAY_MS, INSTANT_MAX)).toISOString().slice(0, 'YYYY-MM-DDTHH:MM'.length),
  } as const;
  const body = html`<p class="muted lede">This ledger is for tests. Credits expire, holds lapse and cycles renew according to its test clock. You can only move the clock forward.</p>
<section class="card">
<h2>Advance by days</h2>
<form class="form" method="post" action="${TEST_CLOCK_PATH}" novalidate>
!${formError(stateOf('days'))}
!${startFields(now, TEST_CLOCK_PATH)}
!${field(days, stateOf('days'))}
<button class="button" type="submit">Advance</button>
</form>
</section>
<section class="card">
<h2>Move to a date and time</h2>
<form class="form" method="post" action="${TEST_CLOCK_PATH}" novalidate>
!${formError(stateOf('to'))}
!${field(to, stateOf('to'))}
<button class="button" type="submit">Move</button>
</form>
</section>`;
  return page({ title: 'Test clock', ...context, body });
}
