// Draws the balance of an end user as a step line: solid up to now, computed from postings, then dashed, projected from
// expiries and renewals.

import assert from 'node:assert/strict';
import { scaleUtc } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { html } from 'ghtml';
import { balanceSteps, type Range, type Step } from '../../ledger/history.ts';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import type { ChartHistory } from '../../store/console-store.ts';
import { moment, numberText, shortDayText, signedText, UTC_MARK } from '../figures.ts';
import {
  chartFigure,
  creditPlot,
  DAY_TICK_HALF_WIDTH,
  dayTick,
  legendOf,
  needsLogarithm,
  type PlotSize,
  round,
} from './plot.ts';

/** A busy end user has thousands of steps. The list of transactions shows all of them. */
const TABLE_ROWS_MAX = 200;

/** About one step per pixel. More steps would only make the page larger. */
const LINE_STEPS_MAX = 500;

export interface BalanceOverTime {
  readonly now: Instant;
  /** From the first instant of the chart to now; at least one step. */
  readonly past: readonly Step[];
  /** From now to the end of the chart; the first step is the balance now. */
  readonly future: readonly Step[];
  readonly end: Instant;
}

export function balanceOverTime(history: ChartHistory, range: Range): BalanceOverTime {
  const { now } = history;
  const { from, to: end } = range;
  assert(history.since <= from && from <= now && now <= end, 'the chart includes now and begins within the history');
  const steps = balanceSteps(history, range);
  const past = steps.filter(({ at }) => at <= now);
  const { balance } = past.at(-1) as Step;
  return { now, past, future: [{ at: now, balance }, ...steps.filter(({ at }) => at > now)], end };
}

export function balanceChart(balance: BalanceOverTime): string {
  const { past, future } = balance;
  const [first, now, last] = [past[0], future[0], future.at(-1)] as [Step, Step, Step];
  const most = Math.max(...past.map(({ balance }) => balance));
  const isLogarithmic = needsLogarithm([...past, ...future].map(({ balance }) => balance));
  return chartFigure({
    id: 'balance',
    title: 'Balance over time',
    description: `${numberText(first.balance)} on ${shortDayText(first.at)}, at most ${numberText(most)}, ${numberText(now.balance)} now. Projected for ${shortDayText(balance.end)} from expiries and renewals: ${numberText(last.balance)}.`,
    legend: legendOf(
      [
        { mark: 'line-past', label: 'Balance' },
        { mark: 'line-future', label: 'Projected: expiries and renewals' },
      ],
      isLogarithmic,
    ),
    table: tableOf(balance),
    draw: (size) => linesOf(balance, size, isLogarithmic),
  });
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function linesOf({ past, now, future, end }: BalanceOverTime, wanted: PlotSize, isLogarithmic: boolean): string {
  const balances = past.concat(future).map(({ balance }) => balance);
  const { size, y, axis } = creditPlot(wanted, balances, isLogarithmic);
  const from = (past[0] as Step).at;
  const x = scaleUtc().domain([from, end]).range([size.left, size.right]);
  const points = (steps: readonly Step[], until: number): Point[] =>
    thinned(steps.concat({ at: until, balance: (steps.at(-1) as Step).balance })).map(({ at, balance }) => ({
      x: round(x(at)),
      y: y(balance),
    }));
  const stroke = line<Point>(
    (point) => point.x,
    (point) => point.y,
  ).curve(curveStepAfter);
  const fill = area<Point>()
    .x((point) => point.x)
    .y0(size.bottom)
    .y1((point) => point.y)
    .curve(curveStepAfter);
  const [before, after] = [points(past, now), points(future, end)];
  const nowX = round(x(now));
  const balanceNow = (future[0] as Step).balance;
  const ticks = dayTicks(from, end, now, size)
    .filter((at) => x(at) > size.left && x(at) < size.width - DAY_TICK_HALF_WIDTH)
    .map((at) => dayTick(size, round(x(at)), shortDayText(at)));
  return html`!${axis}<path class="area-past" d="${fill(before)}"/><path class="area-future" d="${fill(after)}"/><path class="line-past" d="${stroke(before)}"/><path class="line-future" d="${stroke(after)}"/><path class="now" d="M${nowX} ${size.top}V${size.bottom}"/><text class="tick strong" x="${nowX + 6}" y="${size.top + 9}">Now</text><circle class="dot" cx="${nowX}" cy="${y(balanceNow)}" r="4"><title>${numberText(balanceNow)} now</title></circle>!${ticks}`;
}

/** Returns evenly spaced days, counted from today, so that today always has a tick. */
function dayTicks(from: Instant, end: Instant, now: Instant, { dayTicks: wanted }: PlotSize): Instant[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const step = Math.max(1, Math.ceil((end - from) / DAY_MS / wanted)) * DAY_MS;
  const first = today - Math.floor((today - from) / step) * step;
  return Array.from({ length: Math.floor((end - first) / step) + 1 }, (_, index) => first + index * step);
}

/** Reduces many steps to the first step and the last step of each interval of about one pixel. */
function thinned(steps: readonly Step[]): readonly Step[] {
  if (steps.length <= LINE_STEPS_MAX) return steps;
  const [first, last] = [steps[0], steps.at(-1)] as [Step, Step];
  const width = (last.at - first.at) / LINE_STEPS_MAX;
  const interval = (step: Step | undefined) => Math.floor(((step?.at ?? Number.POSITIVE_INFINITY) - first.at) / width);
  return steps.filter((step, index) => index === 0 || interval(step) !== interval(steps[index + 1]));
}

function tableOf({ past, future }: BalanceOverTime): string {
  const shown = past.slice(-TABLE_ROWS_MAX);
  const before = past[past.length - shown.length - 1];
  const rows = [
    ...future
      .slice(1, TABLE_ROWS_MAX)
      .map((step, index) => rowOf(step, future[index], 'projected'))
      .toReversed(),
    ...shown.map((step, index) => rowOf(step, shown[index - 1] ?? before, 'past')).toReversed(),
  ];
  return html`<table class="table"><thead><tr><th scope="col">Time!${UTC_MARK}</th><th scope="col">Past or projected</th><th scope="col" class="number">Change</th><th scope="col" class="number">Balance</th></tr></thead><tbody>!${rows}</tbody></table>`;
}

function rowOf({ at, balance }: Step, before: Step | undefined, tense: 'past' | 'projected'): string {
  const change = before === undefined ? '' : signedText(balance - before.balance);
  return html`<tr><th scope="row">!${moment(at)}</th><td>${tense}</td><td class="number">${change}</td><td class="number">${numberText(balance)}</td></tr>`;
}
