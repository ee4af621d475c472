// Credits per day as stacked bars: granted and renewed above the zero line, spent and expired below it.

import { scaleBand } from 'd3-scale';
import { stack, stackOffsetDiverging } from 'd3-shape';
import { html } from 'ghtml';
import type { OverviewDay } from '../../store/console-store.ts';
import { dayText, numberText } from '../figures.ts';
import { chartFigure, creditAxis, creditScale, dayTick, legendOf, type PlotSize, round } from './plot.ts';

const ABOVE = ['added', 'renewed'] as const;
const BELOW = ['spent', 'expired'] as const;
const FLOWS = [...ABOVE, ...BELOW];
type Flow = (typeof FLOWS)[number];

const LABELS: Readonly<Record<Flow, string>> = {
  added: 'Granted',
  renewed: 'Renewed',
  spent: 'Spent',
  expired: 'Expired',
};

export function creditFlowChart(days: readonly OverviewDay[]): string {
  const total = (flow: Flow) => numberText(days.reduce((sum, day) => sum + amountOf(day, flow), 0n));
  return chartFigure({
    id: 'credit-flow',
    title: `Credits per day, last ${days.length} days`,
    description: `Granted ${total('added')}, renewed ${total('renewed')}, spent ${total('spent')}, expired ${total('expired')}.`,
    legend: legendOf(FLOWS.map((flow) => ({ mark: `flow-${flow}`, label: LABELS[flow], total: total(flow) }))),
    table: tableOf(days),
    draw: (size) => barsOf(days, size),
  });
}

function amountOf(day: OverviewDay, flow: Flow): bigint {
  return flow === 'added' ? day.added + day.started : day[flow];
}

/** Rounded to the precision of a number; the table is exact. */
function heightOf(day: OverviewDay, flow: Flow): number {
  const amount = Number(amountOf(day, flow));
  return (BELOW as readonly Flow[]).includes(flow) ? -amount : amount;
}

function barsOf(days: readonly OverviewDay[], size: PlotSize): string {
  const layers = stack<OverviewDay, Flow>()
    .keys(FLOWS)
    .value((day, flow) => heightOf(day, flow))
    .offset(stackOffsetDiverging)([...days]);
  const ends = layers.flatMap((layer) => layer.flatMap((pair) => [...pair]));
  const y = creditScale(size, Math.min(0, ...ends), Math.max(0, ...ends));
  const x = scaleBand<number>()
    .domain(days.map((_, index) => index))
    .range([size.left, size.right])
    .paddingInner(0.28);
  const bars = days.map((day, index) => {
    const left = round(x(index) ?? 0);
    const marks = layers.map((layer) => {
      const [from, to] = layer[index] as [number, number];
      const [top, bottom] = [round(y(to)), round(y(from))];
      if (bottom <= top) return '';
      return html`<rect class="flow-${layer.key}" x="${left}" y="${top}" width="${round(x.bandwidth())}" height="${round(bottom - top)}"/>`;
    });
    const hover = html`<rect class="hover" x="${left}" y="${size.top}" width="${round(x.bandwidth())}" height="${size.bottom - size.top}"/>`;
    return html`<g><title>${tooltipText(day)}</title>!${hover}!${marks}</g>`;
  });
  const every = Math.max(1, Math.ceil(days.length / size.dayTicks));
  // Counted from the last day, so that today always has a tick.
  const ticks = days.map(({ day }, index) =>
    (days.length - 1 - index) % every === 0 ? dayTick(size, round((x(index) ?? 0) + x.bandwidth() / 2), day) : '',
  );
  return html`!${creditAxis(size, y)}!${bars}!${ticks}`;
}

function tooltipText(day: OverviewDay): string {
  const lines = FLOWS.map((flow) => `${LABELS[flow]}: ${numberText(amountOf(day, flow))}`);
  return [dayText(day.day), ...lines].join('\n');
}

function tableOf(days: readonly OverviewDay[]): string {
  const rows = days
    .toReversed()
    .map(
      (flow) =>
        html`<tr><th scope="row">${dayText(flow.day)}</th><td class="number">${numberText(flow.added)}</td><td class="number">${numberText(flow.started)}</td><td class="number">${numberText(flow.renewed)}</td><td class="number">${numberText(flow.spent)}</td><td class="number">${numberText(flow.expired)}</td></tr>`,
    );
  return html`<table class="table"><thead><tr><th scope="col">Day (UTC)</th><th scope="col" class="number">Added</th><th scope="col" class="number">Started</th><th scope="col" class="number">Renewed</th><th scope="col" class="number">Spent</th><th scope="col" class="number">Expired</th></tr></thead><tbody>!${rows}</tbody></table>`;
}
