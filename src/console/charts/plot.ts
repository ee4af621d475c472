// What all charts share: their sizes, the axis of credits, day ticks, the legend, and the figure with title, description
// and table. Everything is attributes and classes, since the Content-Security-Policy forbids inline styles.
//
// Text in an SVG scales with it, so each chart is drawn twice, for wide and for narrow containers. The stylesheet shows
// one of them; the other is hidden from screen readers as well.

import { type ScaleLinear, scaleLinear } from 'd3-scale';
import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { compactText, shortDayText } from '../figures.ts';

/** One of the two sizes. Marks are drawn between left and right, top and bottom; ticks around them. */
export interface PlotSize {
  readonly name: 'wide' | 'narrow';
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly dayTicks: number;
}

const WIDE = {
  name: 'wide',
  width: 660,
  height: 210,
  left: 42,
  right: 654,
  top: 10,
  bottom: 186,
  dayTicks: 7,
} as const;
const NARROW = {
  name: 'narrow',
  width: 340,
  height: 220,
  left: 40,
  right: 336,
  top: 12,
  bottom: 192,
  dayTicks: 4,
} as const;

const CREDIT_TICKS = 5;

export type CreditScale = ScaleLinear<number, number>;

export interface Chart {
  /** Unique on its page. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** Trusted HTML. */
  readonly legend: string;
  /** Trusted HTML: a table of the same data. */
  readonly table: string;
  /** Trusted SVG. */
  draw(size: PlotSize): string;
}

export function chartFigure({ id, title, description, legend, table, draw }: Chart): string {
  const drawing = (size: PlotSize) =>
    html`<svg class="chart ${size.name}" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="${id}-${size.name}-title" aria-describedby="${id}-${size.name}-desc"><title id="${id}-${size.name}-title">${title}</title><desc id="${id}-${size.name}-desc">${description}</desc>!${draw(size)}</svg>`;
  return html`<figure class="figure">
!${legend}
!${drawing(WIDE)}
!${drawing(NARROW)}
<details class="as-table"><summary>View as table</summary>
<div class="scroll" role="region" aria-label="${title}, as a table" tabindex="0">!${table}</div>
</details>
</figure>`;
}

export interface LegendEntry {
  /** The class of the marks. */
  readonly mark: string;
  readonly label: string;
  readonly total?: string;
}

export function legendOf(entries: readonly LegendEntry[]): string {
  const items = entries.map(({ mark, label, total }) => {
    const sample = mark.startsWith('line')
      ? html`<path class="${mark}" d="M0 5h14"/>`
      : html`<rect class="${mark}" width="14" height="10" rx="2"/>`;
    return html`<li><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true">!${sample}</svg>${label}!${total === undefined ? '' : html` <strong>${total}</strong>`}</li>`;
  });
  return html`<ul class="legend">!${items}</ul>`;
}

/** From `least` to `most`, extended to round ticks; never of height 0. */
export function creditScale(size: PlotSize, least: number, most: number): CreditScale {
  const domain = least === 0 && most === 0 ? [0, 1] : [least, most];
  return scaleLinear()
    .domain(domain)
    .range([size.bottom, size.top])
    .nice(2 * CREDIT_TICKS);
}

/** Horizontal lines with their credits at the left. Credits are whole numbers, and so are the ticks. */
export function creditAxis(size: PlotSize, scale: CreditScale): string {
  return scale
    .ticks(CREDIT_TICKS)
    .filter(Number.isInteger)
    .map((tick) => {
      const y = round(scale(tick));
      return html`<path class="${tick === 0 ? 'zero' : 'grid'}" d="M${size.left} ${y}H${size.right}"/><text class="tick" x="${size.left - 8}" y="${y + 4}" text-anchor="end">${compactText(tick)}</text>`;
    })
    .join('');
}

/** Half of the width that a day takes as text. */
export const DAY_TICK_HALF_WIDTH = 20;

/** A day below the drawing. The last one is shifted so that it is not cut off. */
export function dayTick(size: PlotSize, x: number, at: Instant): string {
  const anchor = x > size.width - DAY_TICK_HALF_WIDTH ? 'end' : 'middle';
  return html`<text class="tick" x="${anchor === 'end' ? size.right : x}" y="${size.height - 8}" text-anchor="${anchor}">${shortDayText(at)}</text>`;
}

/** To two decimals, which is finer than a pixel. */
export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
