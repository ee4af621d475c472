// What came in and what went out, a bar a day: added and renewed above the line, spent and expired below it.

import { scaleBand } from 'd3-scale';
import { stack, stackOffsetDiverging } from 'd3-shape';
import { html } from 'ghtml';
import type { OverviewDay } from '../../store/account-reads.ts';
import { dayText, figure } from '../figures.ts';
import { chart, creditAxis, creditScale, dayTick, legendOf, type Paper, round } from './plot.ts';

/** Sums over all end users of an account on one day in UTC, none of them negative. */
export type DayFlow = Omit<OverviewDay, 'transactions'>;

const ABOVE = ['added', 'renewed'] as const;
const BELOW = ['spent', 'expired'] as const;
const SERIES = [...ABOVE, ...BELOW];
type Series = (typeof SERIES)[number];

const LABELS: Readonly<Record<Series, string>> = {
  added: 'Added or started',
  renewed: 'Renewed',
  spent: 'Spent',
  expired: 'Expired',
};

export function creditFlowChart(days: readonly DayFlow[]): string {
  const total = (series: Series) => figure(days.reduce((sum, flow) => sum + amountOf(flow, series), 0n));
  return chart({
    id: 'credit-flow',
    title: `Credits a day over ${days.length} days`,
    description: `Added or started ${total('added')}, renewed ${total('renewed')}, spent ${total('spent')}, expired ${total('expired')}.`,
    legend: legendOf(SERIES.map((series) => ({ mark: `flow-${series}`, label: LABELS[series], total: total(series) }))),
    table: tableOf(days),
    draw: (paper) => drawn(days, paper),
  });
}

function amountOf(flow: DayFlow, series: Series): bigint {
  return series === 'added' ? flow.added + flow.started : flow[series];
}

/** Heights need no more digits than a number has; the table has them all. */
function height(flow: DayFlow, series: Series): number {
  const amount = Number(amountOf(flow, series));
  return (BELOW as readonly Series[]).includes(series) ? -amount : amount;
}

function drawn(days: readonly DayFlow[], paper: Paper): string {
  const layers = stack<DayFlow, Series>()
    .keys(SERIES)
    .value((flow, series) => height(flow, series))
    .offset(stackOffsetDiverging)([...days]);
  const ends = layers.flatMap((layer) => layer.flatMap((pair) => [...pair]));
  const y = creditScale(paper, Math.min(0, ...ends), Math.max(0, ...ends));
  const x = scaleBand<number>()
    .domain(days.map((_, index) => index))
    .range([paper.left, paper.right])
    .paddingInner(0.28);
  const bars = days.map((flow, index) => {
    const left = round(x(index) ?? 0);
    const marks = layers.map((layer) => {
      const [from, to] = layer[index] as [number, number];
      const [top, bottom] = [round(y(to)), round(y(from))];
      if (bottom <= top) return '';
      return html`<rect class="flow-${layer.key}" x="${left}" y="${top}" width="${round(x.bandwidth())}" height="${round(bottom - top)}"/>`;
    });
    const hover = html`<rect class="hover" x="${left}" y="${paper.top}" width="${round(x.bandwidth())}" height="${paper.bottom - paper.top}"/>`;
    return html`<g><title>${sayingOf(flow)}</title>!${hover}!${marks}</g>`;
  });
  const every = Math.max(1, Math.ceil(days.length / paper.dayTicks));
  // Counted from the last day, so that today always has its name.
  const ticks = days.map((flow, index) =>
    (days.length - 1 - index) % every === 0 ? dayTick(paper, round((x(index) ?? 0) + x.bandwidth() / 2), flow.day) : '',
  );
  return html`!${creditAxis(paper, y)}!${bars}!${ticks}`;
}

function sayingOf(flow: DayFlow): string {
  return [dayText(flow.day), ...SERIES.map((series) => `${LABELS[series]}: ${figure(amountOf(flow, series))}`)].join(
    '\n',
  );
}

function tableOf(days: readonly DayFlow[]): string {
  const rows = days
    .toReversed()
    .map(
      (flow) =>
        html`<tr><th scope="row">${dayText(flow.day)}</th><td class="number">${figure(flow.added)}</td><td class="number">${figure(flow.started)}</td><td class="number">${figure(flow.renewed)}</td><td class="number">${figure(flow.spent)}</td><td class="number">${figure(flow.expired)}</td></tr>`,
    );
  return html`<table class="table"><thead><tr><th scope="col">Day (UTC)</th><th scope="col" class="number">Added</th><th scope="col" class="number">Started</th><th scope="col" class="number">Renewed</th><th scope="col" class="number">Spent</th><th scope="col" class="number">Expired</th></tr></thead><tbody>!${rows}</tbody></table>`;
}
