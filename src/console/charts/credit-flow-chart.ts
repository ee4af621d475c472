// Draws credits per day or month as stacked bars: granted and renewed above the zero line, spent and expired below it.

import { scaleBand } from 'd3-scale';
import { stack, stackOffsetDiverging } from 'd3-shape';
import { html } from 'ghtml';
import type { Instant } from '../../ledger/instant.ts';
import type { OverviewDay } from '../../store/console-store.ts';
import { dayText, monthText, numberText, shortDayText } from '../figures.ts';
import { chartFigure, creditPlot, dayTick, legendOf, needsLogarithm, type PlotSize, round } from './plot.ts';

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

interface CreditFlow {
  readonly title: string;
  readonly unit: 'day' | 'month';
  /** The totals of each day or month, oldest first. `day` is the start of the day or month. */
  readonly bars: readonly OverviewDay[];
  /**
   * Whether the bars show only the transactions of one API key or member. If so, the chart leaves out renewals and
   * expiries, because no API key or member causes them.
   */
  readonly isOfActor: boolean;
}

export function creditFlowChart(flow: CreditFlow): string {
  const { title, bars } = flow;
  const flows = flowsOf(flow);
  const isLogarithmic = needsLogarithm(bars.flatMap((bar) => flows.map((one) => heightOf(bar, one))));
  const total = (one: Flow) => numberText(bars.reduce((sum, bar) => sum + amountOf(bar, one), 0n));
  return chartFigure({
    id: 'credit-flow',
    title,
    description: `${flows.map((one) => `${LABELS[one]} ${total(one)}`).join(', ')}.`,
    legend: legendOf(
      flows.map((one) => ({ mark: `flow-${one}`, label: LABELS[one], total: total(one) })),
      isLogarithmic,
    ),
    table: tableOf(flow),
    draw: (size) => barsOf(flow, size, isLogarithmic),
  });
}

/** Sums days into months (UTC). */
export function monthsOf(days: readonly OverviewDay[]): readonly OverviewDay[] {
  const months = Map.groupBy(days, ({ day }) => monthText(day));
  return [...months.values()].map((those) =>
    those.reduce((sum, one) => ({
      day: sum.day,
      added: sum.added + one.added,
      started: sum.started + one.started,
      spent: sum.spent + one.spent,
      expired: sum.expired + one.expired,
      renewed: sum.renewed + one.renewed,
      transactions: sum.transactions + one.transactions,
    })),
  );
}

function flowsOf({ isOfActor }: CreditFlow): readonly Flow[] {
  return isOfActor ? FLOWS.filter((flow) => flow === 'added' || flow === 'spent') : FLOWS;
}

function amountOf(day: OverviewDay, flow: Flow): bigint {
  return flow === 'added' ? day.added + day.started : day[flow];
}

/**
 * Returns the height of a bar segment in credits, negative below the zero line. Very large amounts are rounded; the
 * table below the chart shows the exact amounts.
 */
function heightOf(day: OverviewDay, flow: Flow): number {
  const amount = Number(amountOf(day, flow));
  return (BELOW as readonly Flow[]).includes(flow) ? -amount : amount;
}

function barsOf(flow: CreditFlow, wanted: PlotSize, isLogarithmic: boolean): string {
  const days = flow.bars;
  const layers = stack<OverviewDay, Flow>()
    .keys(flowsOf(flow))
    .value((day, flow) => heightOf(day, flow))
    .offset(stackOffsetDiverging)([...days]);
  const ends = layers.flatMap((layer) => layer.flatMap((pair) => [...pair]));
  const { size, y, axis } = creditPlot(wanted, ends, isLogarithmic);
  const x = scaleBand<number>()
    .domain(days.map((_, index) => index))
    .range([size.left, size.right])
    .paddingInner(0.28);
  const bars = days.map((day, index) => {
    const left = round(x(index) ?? 0);
    const marks = layers.map((layer) => {
      const [from, to] = layer[index] as [number, number];
      const [top, bottom] = [y(to), y(from)];
      if (bottom <= top) return '';
      return html`<rect class="flow-${layer.key}" x="${left}" y="${top}" width="${round(x.bandwidth())}" height="${round(bottom - top)}"/>`;
    });
    const hover = html`<rect class="hover" x="${left}" y="${size.top}" width="${round(x.bandwidth())}" height="${size.bottom - size.top}"/>`;
    return html`<g><title>${tooltipText(day, flow)}</title>!${hover}!${marks}</g>`;
  });
  const every = Math.max(1, Math.ceil(days.length / size.dayTicks));
  // Count ticks from the last bar, so that the current day or month always has a tick.
  const ticks = days.map(({ day }, index) =>
    (days.length - 1 - index) % every === 0
      ? dayTick(size, round((x(index) ?? 0) + x.bandwidth() / 2), tickText(day, flow))
      : '',
  );
  return html`!${axis}!${bars}!${ticks}`;
}

function nameOf(at: Instant, { unit }: CreditFlow): string {
  return unit === 'month' ? monthText(at) : dayText(at);
}

function tickText(at: Instant, { unit }: CreditFlow): string {
  return unit === 'month' ? monthText(at).slice(0, 3) : shortDayText(at);
}

function tooltipText(bar: OverviewDay, flow: CreditFlow): string {
  const lines = flowsOf(flow).map((one) => `${LABELS[one]}: ${numberText(amountOf(bar, one))}`);
  return [nameOf(bar.day, flow), ...lines].join('\n');
}

function tableOf(flow: CreditFlow): string {
  const columns = (['added', 'started', 'renewed', 'spent', 'expired'] as const).filter(
    (column) => !flow.isOfActor || (column !== 'renewed' && column !== 'expired'),
  );
  const rows = flow.bars
    .toReversed()
    .map(
      (bar) =>
        html`<tr><th scope="row">${nameOf(bar.day, flow)}</th>!${columns.map((column) => html`<td class="number">${numberText(bar[column])}</td>`)}</tr>`,
    );
  const headings = columns.map((column) => html`<th scope="col" class="number">${HEADINGS[column]}</th>`);
  const unit = flow.unit === 'month' ? 'Month' : 'Day';
  return html`<table class="table"><thead><tr><th scope="col">${unit} (UTC)</th>!${headings}</tr></thead><tbody>!${rows}</tbody></table>`;
}

const HEADINGS = {
  added: 'Added',
  started: 'Started',
  renewed: 'Renewed',
  spent: 'Spent',
  expired: 'Expired',
} as const;
