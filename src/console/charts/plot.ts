// The paper that charts are drawn on: its sizes, the scale of credits with its lines, and the frame with title,
// description and table. All of it is attributes and classes, since the console allows no inline style.
//
// Text in an SVG shrinks with it, so each chart is drawn twice, for wide and for narrow places, and the stylesheet
// shows one. The hidden one is hidden from screen readers too.

import { type ScaleLinear, scaleLinear } from 'd3-scale';
import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import { shortDayText, shortFigure } from '../figures.ts';

export interface Paper {
  readonly name: 'wide' | 'narrow';
  readonly width: number;
  readonly height: number;
  /** The area of the marks, within room for the ticks. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly dayTicks: number;
}

const WIDE: Paper = { name: 'wide', width: 660, height: 210, left: 42, right: 654, top: 10, bottom: 186, dayTicks: 7 };
const NARROW: Paper = {
  name: 'narrow',
  width: 340,
  height: 220,
  left: 40,
  right: 336,
  top: 12,
  bottom: 192,
  dayTicks: 4,
};

const CREDIT_TICKS = 5;

export type CreditScale = ScaleLinear<number, number>;

export interface Figure {
  /** Unique on its page. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** Trusted HTML: what the colours mean. */
  readonly legend: string;
  /** Trusted HTML: a table of the same. */
  readonly table: string;
  /** Trusted SVG for a paper. */
  draw(paper: Paper): string;
}

export function chart({ id, title, description, legend, table, draw }: Figure): string {
  const drawing = (paper: Paper) =>
    html`<svg class="chart ${paper.name}" viewBox="0 0 ${paper.width} ${paper.height}" role="img" aria-labelledby="${id}-${paper.name}-title" aria-describedby="${id}-${paper.name}-desc"><title id="${id}-${paper.name}-title">${title}</title><desc id="${id}-${paper.name}-desc">${description}</desc>!${draw(paper)}</svg>`;
  return html`<figure class="figure">
!${legend}
!${drawing(WIDE)}
!${drawing(NARROW)}
<details class="as-table"><summary>Show as a table</summary>
<div class="scroll" role="region" aria-label="${title}, as a table" tabindex="0">!${table}</div>
</details>
</figure>`;
}

export interface Key {
  readonly mark: string;
  readonly label: string;
  /** What it comes to, where that is a number. */
  readonly total?: string;
}

/** @param keys class of the mark and what it stands for */
export function legendOf(keys: readonly Key[]): string {
  return html`<ul class="legend">!${keys.map(
    ({ mark, label, total }) =>
      html`<li><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true">!${
        mark.startsWith('line')
          ? html`<path class="${mark}" d="M0 5h14"/>`
          : html`<rect class="${mark}" width="14" height="10" rx="2"/>`
      }</svg>${label}!${total === undefined ? '' : html` <strong>${total}</strong>`}</li>`,
  )}</ul>`;
}

/** From the least to the most, and a little more, so that the ticks are round; never without height. */
export function creditScale(paper: Paper, least: number, most: number): CreditScale {
  const domain = least === 0 && most === 0 ? [0, 1] : [least, most];
  return scaleLinear()
    .domain(domain)
    .range([paper.bottom, paper.top])
    .nice(2 * CREDIT_TICKS);
}

/** Lines across, with their credits at the left. Credits are whole, and so are the ticks. */
export function creditAxis(paper: Paper, scale: CreditScale): string {
  return scale
    .ticks(CREDIT_TICKS)
    .filter(Number.isInteger)
    .map((tick) => {
      const y = round(scale(tick));
      return html`<path class="${tick === 0 ? 'zero' : 'grid'}" d="M${paper.left} ${y}H${paper.right}"/><text class="tick" x="${paper.left - 8}" y="${y + 4}" text-anchor="end">${shortFigure(tick)}</text>`;
    })
    .join('');
}

/** Half as wide as a day is written. */
export const DAY_TICK_HALF = 20;

/** A day below the drawing; the last one stays on the paper. */
export function dayTick(paper: Paper, x: number, at: Instant): string {
  const anchor = x > paper.width - DAY_TICK_HALF ? 'end' : 'middle';
  return html`<text class="tick" x="${anchor === 'end' ? paper.right : x}" y="${paper.height - 8}" text-anchor="${anchor}">${shortDayText(at)}</text>`;
}

/** Two decimals are finer than a screen. */
export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
