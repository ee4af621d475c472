// Shared parts of all charts: sizes, the credit axis, day ticks, the legend, and the `<figure>` element.
//
// The text in an SVG scales with the SVG. Each chart is therefore drawn twice, once for wide containers and once for
// narrow ones, and the stylesheet hides one of the two drawings.

import { scaleLinear, scaleSymlog } from 'd3-scale';
import { html } from 'ghtml';
import { compactText, wrappable } from '../figures.ts';

/** The size of a drawing, and the bounds of its bars or lines, in SVG units. Tick labels are outside these bounds. */
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
/** The gap between a number on the axis and its grid line, and the width of a character, both in SVG units. */
const TICK_GAP = 8;
const TICK_CHARACTER_WIDTH = 7;

/**
 * If the largest value exceeds this multiple of the lower quartile, the scale is logarithmic, because a linear scale
 * would flatten most values.
 */
const LINEAR_RATIO_MAX = 500;
/** A logarithmic scale ends at this multiple of the largest value; a linear scale ends at a round number. */
const HEADROOM = 10;

interface CreditPlot {
  readonly size: PlotSize;
  /** Returns the distance of an amount from the top of the drawing, in SVG units. */
  readonly y: (credits: number) => number;
  /** Trusted SVG: horizontal lines, each with its amount on the left. */
  readonly axis: string;
}

interface Chart {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** Trusted HTML. */
  readonly legend: string;
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

interface LegendEntry {
  /** The CSS class of the bars or lines. */
  readonly mark: string;
  readonly label: string;
  readonly total?: string;
}

export function legendOf(entries: readonly LegendEntry[], isLogarithmic: boolean): string {
  const items = entries.map(({ mark, label, total }) => {
    const sample = mark.startsWith('line')
      ? html`<path class="${mark}" d="M0 5h14"/>`
      : html`<rect class="${mark}" width="14" height="10" rx="2"/>`;
    return html`<li><svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true">!${sample}</svg>${label}!${total === undefined ? '' : html` <strong>!${wrappable(total)}</strong>`}</li>`;
  });
  return html`<ul class="legend">!${items}!${isLogarithmic ? '<li>Logarithmic scale</li>' : ''}</ul>`;
}

/**
 * Creates an axis that covers 0 and all bars or lines.
 *
 * @param ends the upper and lower ends of all bars or lines, in credits
 * @param isLogarithmic the result of `needsLogarithm` for the amounts in the chart
 */
export function creditPlot(size: PlotSize, ends: readonly number[], isLogarithmic: boolean): CreditPlot {
  const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const domain = least === 0 && most === 0 ? [0, 1] : [least, most];
  const linear = scaleLinear(domain, [size.bottom, size.top]).nice(2 * CREDIT_TICKS);
  const scale = isLogarithmic ? scaleSymlog([least, HEADROOM * most], [size.bottom, size.top]) : linear;
  // Omit fractional ticks, because credits are whole numbers.
  const ticks = isLogarithmic ? powersOfTen(least, most) : linear.ticks(CREDIT_TICKS).filter(Number.isInteger);
  const widest = Math.max(...ticks.map((tick) => compactText(tick).length));
  const left = Math.max(size.left, TICK_GAP + widest * TICK_CHARACTER_WIDTH);
  const lines = ticks.map((tick) => {
    const y = round(scale(tick));
    return html`<path class="${tick === 0 ? 'zero' : 'grid'}" d="M${left} ${y}H${size.right}"/><text class="tick" x="${left - TICK_GAP}" y="${y + 4}" text-anchor="end">${compactText(tick)}</text>`;
  });
  return { size: { ...size, left }, y: (credits) => round(scale(credits)), axis: lines.join('') };
}

/** Whether a few values are so large that a linear scale would hide the others. */
export function needsLogarithm(values: readonly number[]): boolean {
  const sizes = values
    .map(Math.abs)
    .filter((size) => size > 0)
    .sort((a, b) => a - b);
  const quartile = sizes[Math.floor(sizes.length / 4)] ?? 0;
  return (sizes.at(-1) ?? 0) > LINEAR_RATIO_MAX * quartile;
}

function powersOfTen(least: number, most: number): number[] {
  const highest = Math.floor(Math.log10(Math.max(most, -least)));
  const step = Math.max(1, Math.ceil(highest / (CREDIT_TICKS - 1)));
  const powers = Array.from({ length: Math.floor(highest / step) }, (_, index) => 10 ** ((index + 1) * step));
  return [...powers.map((power) => -power).reverse(), 0, ...powers].filter((tick) => tick >= least && tick <= most);
}

/** Half the width of a day label, in SVG units. */
export const DAY_TICK_HALF_WIDTH = 20;

/** Draws a day label, shifted to the left if the right edge would cut it off. */
export function dayTick(size: PlotSize, x: number, text: string): string {
  const anchor = x > size.width - DAY_TICK_HALF_WIDTH ? 'end' : 'middle';
  return html`<text class="tick" x="${anchor === 'end' ? size.right : x}" y="${size.height - 8}" text-anchor="${anchor}">${text}</text>`;
}

/** Rounds to two decimal places, which is more precise than a pixel. */
export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
