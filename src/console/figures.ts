// Numbers and times as text, the same on every page. Functions that end in `Text` return text, the others trusted HTML.
// Times are UTC; the `<time>` element carries the exact value, which the script shows in the time zone of the browser.

import { html } from 'ghtml';
import { DAY_MS, HOUR_MS, INSTANT_MAX, type Instant } from '../ledger/instant.ts';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

const MINUTE_MS = 60_000;

/** The minus sign, which is as wide as a digit; a hyphen is not. */
const MINUS = '−';

/** `1,234`. */
export function numberText(value: number | bigint): string {
  return WHOLE.format(value).replace('-', MINUS);
}

/** `+100`, `−40`, `0`. */
export function signedText(value: number | bigint): string {
  return value > 0 ? `+${numberText(value)}` : numberText(value);
}

/** For the ticks of an axis: `1.2K`. */
export function compactText(value: number): string {
  return COMPACT.format(value).replace('-', MINUS);
}

/** Beyond this, a number does not fit on one line of a tile or a narrow column. */
const LINE_CHARACTERS_MAX = 11;

/** A number in large digits. A long one is smaller, and may wrap between thousands. */
export function largeNumber(value: number | bigint): string {
  const isLong = numberText(value).length > LINE_CHARACTERS_MAX;
  return html`<span class="large-number!${isLong ? ' long' : ''}">!${wrappableNumber(value)}</span>`;
}

/** A number for narrow columns: a long one may wrap between thousands. */
export function wrappableNumber(value: number | bigint): string {
  const text = numberText(value);
  return text.length <= LINE_CHARACTERS_MAX ? text : text.replaceAll(',', ',<wbr>');
}

/** `20 Nov 2026`. */
export function dayText(instant: Instant): string {
  // `Fri, 20 Nov 2026 08:00:03 GMT`
  return new Date(instant).toUTCString().slice(5, 16).replace(/^0/, '');
}

/** `20 Nov`. */
export function shortDayText(instant: Instant): string {
  return dayText(instant).slice(0, -' 2026'.length);
}

/** `20 Nov 2026, 08:00:03`. */
export function momentText(instant: Instant): string {
  return `${dayText(instant)}, ${new Date(instant).toISOString().slice(11, 19)}`;
}

export function moment(instant: Instant): string {
  return time(instant, momentText(instant));
}

/** With the time zone, where no heading names it. */
export function momentUtc(instant: Instant): string {
  return time(instant, `${momentText(instant)} UTC`);
}

export function day(instant: Instant): string {
  return time(instant, dayText(instant));
}

/** The end of a cycle, to the minute. The last instant that the ledger can store means never. */
export function endTime(instant: Instant): string {
  return instant === INSTANT_MAX ? 'never' : time(instant, momentText(instant).slice(0, -':00'.length));
}

/** Rounded to the largest unit: `12 days`, `5 hours`, `less than a minute`. */
export function durationText(milliseconds: number): string {
  const units = [
    ['day', DAY_MS],
    ['hour', HOUR_MS],
    ['minute', MINUTE_MS],
  ] as const;
  for (const [unit, length] of units) {
    if (milliseconds < length) continue;
    const count = Math.round(milliseconds / length);
    return `${numberText(count)} ${unit}${count === 1 ? '' : 's'}`;
  }
  return 'less than a minute';
}

/** The last use of an API key is stored to the day: a finer time would cost a write per request. */
export function lastUseText(instant: Instant | null, now: Instant): string {
  if (instant === null) return 'never';
  const days = Math.floor(now / DAY_MS) - Math.floor(instant / DAY_MS);
  if (days <= 0) return 'today';
  return days === 1 ? 'yesterday' : `${numberText(days)} days ago`;
}

function time(instant: Instant, text: string): string {
  return html`<time datetime="${new Date(instant).toISOString()}">${text}</time>`;
}
