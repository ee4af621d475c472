// Numbers and times as people read them, the same on every page: thousands are separated, instants are UTC and carry
// their exact value in `datetime`. Nothing here reads a clock.

import { html } from 'ghtml';
import { DAY_MS, INSTANT_MAX, type Instant } from '../ledger/instant.ts';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const SCIENTIFIC = new Intl.NumberFormat('en-US', { notation: 'scientific', maximumFractionDigits: 1 });
const BEYOND_LETTERS = 1e15;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const;

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** The minus sign, which is as wide as a digit and a plus; a hyphen is not. */
const MINUS = '−';

export function figure(value: number | bigint): string {
  return WHOLE.format(value).replace('-', MINUS);
}

/** With its sign, as a movement: `+100`, `−40`, `0`. */
export function movement(value: number | bigint): string {
  return value > 0 ? `+${figure(value)}` : figure(value);
}

/** As long as fits where figures are large. */
const LARGE_CHARACTERS_MAX = 11;

/** One that stands by itself, in large digits: smaller when it is long, and broken between thousands at worst. */
export function largeFigure(value: number | bigint): string {
  const isLong = figure(value).length > LARGE_CHARACTERS_MAX;
  return html`<span class="large-figure!${isLong ? ' long' : ''}">!${breakableFigure(value)}</span>`;
}

/** One that may stand in a narrow place: a long one breaks between thousands, not within them. */
export function breakableFigure(value: number | bigint): string {
  const text = figure(value);
  return text.length <= LARGE_CHARACTERS_MAX ? text : text.replaceAll(',', ',<wbr>');
}

/** For the ticks of an axis, where there is no room: `1.2K`, and `2E15` past what thousands have letters for. */
export function shortFigure(value: number): string {
  const format = Math.abs(value) < BEYOND_LETTERS ? SHORT : SCIENTIFIC;
  return format.format(value).replace('-', MINUS);
}

export function creditsOf(value: number | bigint): string {
  return value === 1 || value === 1n ? '1 credit' : `${figure(value)} credits`;
}

/** `20 Nov 2026`. */
export function dayText(instant: Instant): string {
  return `${shortDayText(instant)} ${new Date(instant).getUTCFullYear()}`;
}

/** `20 Nov`, where the year is plain. */
export function shortDayText(instant: Instant): string {
  const date = new Date(instant);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** `20 Nov 2026, 08:00:03`, in UTC, which the page says once. */
export function momentText(instant: Instant): string {
  return `${dayText(instant)}, ${new Date(instant).toISOString().slice(11, 19)}`;
}

/** To the minute, where seconds are noise. */
export function minuteText(instant: Instant): string {
  return momentText(instant).slice(0, -':00'.length);
}

export function moment(instant: Instant): string {
  return html`<time datetime="${iso(instant)}">${momentText(instant)}</time>`;
}

/** With the zone, where no heading says it. */
export function momentUtc(instant: Instant): string {
  return html`<time datetime="${iso(instant)}">${momentText(instant)} UTC</time>`;
}

export function day(instant: Instant): string {
  return html`<time datetime="${iso(instant)}">${dayText(instant)}</time>`;
}

/** An end as it is shown, to the minute: credits whose end lies past the year 9999 never expire as far as anybody will see. */
export function ending(instant: Instant): string {
  if (instant === INSTANT_MAX) return 'never';
  return html`<time datetime="${iso(instant)}">${minuteText(instant)}</time>`;
}

/** How long until then, to the larger unit: `12 days`, `5 hours`, `less than a minute`. */
export function durationText(milliseconds: number): string {
  const units = [
    ['day', DAY_MS],
    ['hour', HOUR_MS],
    ['minute', MINUTE_MS],
  ] as const;
  for (const [unit, length] of units) {
    const count = Math.floor(milliseconds / length);
    if (count >= 1) return `${figure(count)} ${unit}${count === 1 ? '' : 's'}`;
  }
  return 'less than a minute';
}

/** A day is close enough for the last use of a key, and finer would mean a write for each use. */
export function coarsely(instant: Instant | null, now: Instant): string {
  if (instant === null) return 'never';
  const days = Math.floor(now / DAY_MS) - Math.floor(instant / DAY_MS);
  if (days <= 0) return 'today';
  return days === 1 ? 'yesterday' : `${figure(days)} days ago`;
}

function iso(instant: Instant): string {
  return new Date(instant).toISOString();
}
