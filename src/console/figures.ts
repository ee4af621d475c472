// Formats numbers and UTC times for all pages. Functions whose names end in `Text` return plain text; all other
// functions return trusted HTML. The console's script replaces the text of `<time>` elements with local times.

import { html } from 'ghtml';
import { DAY_MS, HOUR_MS, INSTANT_MAX, type Instant } from '../ledger/instant.ts';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

const MINUTE_MS = 60_000;

/** The minus sign is as wide as a digit; a hyphen is narrower. */
const MINUS = '−';

/** Isolates a text that might be right-to-left, so that it does not reorder the text around it. */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

/** Formats a number: `1,234`. */
export function numberText(value: number | bigint): string {
  return WHOLE.format(value).replace('-', MINUS);
}

/** Formats a number with its sign: `+100`, `−40`, `0`. */
export function signedText(value: number | bigint): string {
  return value > 0 ? `+${numberText(value)}` : numberText(value);
}

/** Formats an amount: `1 credit`, `1,234 credits`. */
export function creditsText(amount: number): string {
  return `${numberText(amount)} ${amount === 1 ? 'credit' : 'credits'}`;
}

/** How many unused credits roll over: `up to 500 unused credits`. */
export function rolloverLimitText(max: number): string {
  return `up to ${numberText(max)} unused ${max === 1 ? 'credit' : 'credits'}`;
}

/** Formats a number for the ticks of an axis: `1.2K`. */
export function compactText(value: number): string {
  return COMPACT.format(value).replace('-', MINUS);
}

/** A longer number does not fit on one line of a narrow column. */
const LINE_CHARACTERS_MAX = 11;

/** Renders a number in large type. A long number gets smaller type and can wrap after a thousands separator. */
export function largeNumber(value: number | bigint): string {
  const isLong = numberText(value).length > LINE_CHARACTERS_MAX;
  return html`<span class="large-number!${isLong ? ' long' : ''}">!${wrappableNumber(value)}</span>`;
}

/**
 * Formats a number for narrow columns. A long number starts on a new line if it does not fit on the current one, and
 * can wrap after a thousands separator.
 */
export function wrappableNumber(value: number | bigint): string {
  return wrappable(numberText(value));
}

/** Like `wrappableNumber`, but for a number that is already formatted, for example with a sign. */
export function wrappable(text: string): string {
  return text.length <= LINE_CHARACTERS_MAX ? text : `<span class="whole">${text.replaceAll(',', ',<wbr>')}</span>`;
}

/** Formats a day: `20 Nov 2026`. */
export function dayText(instant: Instant): string {
  // `toUTCString` returns `Fri, 20 Nov 2026 08:00:03 GMT`.
  return new Date(instant).toUTCString().slice(5, 16).replace(/^0/, '');
}

/** Formats a month: `Nov 2026`. */
export function monthText(instant: Instant): string {
  return dayText(instant).slice(-'Nov 2026'.length);
}

/** Formats a day for file names: `2026-11-20`. */
export function dateText(instant: Instant): string {
  return new Date(instant).toISOString().slice(0, 10);
}

/** Formats a day without its year: `20 Nov`. */
export function shortDayText(instant: Instant): string {
  return dayText(instant).slice(0, -' 2026'.length);
}

/** Formats an instant to the second: `20 Nov 2026, 08:00:03`. */
function momentText(instant: Instant): string {
  return `${dayText(instant)}, ${new Date(instant).toISOString().slice(11, 19)}`;
}

export function moment(instant: Instant): string {
  return time(instant, momentText(instant), 'second');
}

/** Formats an instant for plain text, which the script does not convert: `20 Nov 2026, 08:00:03 UTC`. */
export function momentUtcText(instant: Instant): string {
  return `${momentText(instant)} UTC`;
}

/** Formats an instant with the time zone, for places where no heading names the time zone. */
export function momentUtc(instant: Instant): string {
  return time(instant, momentUtcText(instant), 'zoned');
}

export function day(instant: Instant): string {
  return time(instant, dayText(instant), 'day');
}

/** Formats the end of a cycle to the minute; returns `never` for `INSTANT_MAX`. */
export function endTime(instant: Instant): string {
  return instant === INSTANT_MAX ? 'never' : time(instant, minuteText(instant), 'minute');
}

/** Like `endTime`, but with the time zone, for places where no heading names the time zone. */
export function endTimeUtc(instant: Instant): string {
  return instant === INSTANT_MAX ? 'never' : time(instant, `${minuteText(instant)} UTC`, 'zoned');
}

function minuteText(instant: Instant): string {
  return momentText(instant).slice(0, -':00'.length);
}

/** Formats a duration, rounded up to days, hours or minutes: `12 days`, `5 hours`, `less than a minute`. */
export function durationText(milliseconds: number): string {
  const units = [
    ['day', DAY_MS],
    ['hour', HOUR_MS],
    ['minute', MINUTE_MS],
  ] as const;
  for (const [unit, length] of units) {
    if (milliseconds < length) continue;
    const count = Math.ceil(milliseconds / length);
    return `${numberText(count)} ${unit}${count === 1 ? '' : 's'}`;
  }
  return 'less than a minute';
}

/** Formats an instant as the number of days (in UTC) since then: `today`, `yesterday`, `3 days ago`; `never` for null. */
export function daysAgoText(instant: Instant | null, now: Instant): string {
  if (instant === null) return 'never';
  const days = Math.floor(now / DAY_MS) - Math.floor(instant / DAY_MS);
  if (days <= 0) return 'today';
  return days === 1 ? 'yesterday' : `${numberText(days)} days ago`;
}

/** @param precision how precisely the script shows the local time; `zoned` shows seconds and the time zone */
function time(instant: Instant, text: string, precision: 'day' | 'minute' | 'second' | 'zoned'): string {
  return html`<time datetime="${new Date(instant).toISOString()}" data-precision="${precision}">${text}</time>`;
}

/** Names the time zone in a heading; the script hides this mark when it shows local times. */
export const UTC_MARK = '<span class="utc"> (UTC)</span>';
