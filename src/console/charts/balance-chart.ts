// The balance of one end user as a line of steps: what it was, now, and, dashed, what time alone will do to it.

import { scaleUtc } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { html } from 'ghtml';
import { DAY_MS, type Instant } from '../../ledger/instant.ts';
import { figure, moment, movement, shortDayText } from '../figures.ts';
import type { BalanceOverTime, Step } from './balance-over-time.ts';
import { chart, creditAxis, creditScale, DAY_TICK_HALF, dayTick, legendOf, type Paper, round } from './plot.ts';

/** Rows of the table: a busy end user has thousands of steps, and the transactions list has them all. */
const TABLE_STEPS_MAX = 200;

/** More steps than a screen has columns only make the page heavier. */
const LINE_STEPS_MAX = 500;

export function balanceChart(balance: BalanceOverTime): string {
  const { past, future } = balance;
  const [first, now, last] = [past[0], future[0], future.at(-1)] as [Step, Step, Step];
  const most = Math.max(...past.map(({ balance }) => balance));
  return chart({
    id: 'balance',
    title: 'Balance over time',
    description: `From ${figure(first.balance)} on ${shortDayText(first.at)}, at most ${figure(most)}, to ${figure(now.balance)} now. By ${shortDayText(balance.end)}, expiries and renewals alone leave ${figure(last.balance)}.`,
    legend: legendOf([
      { mark: 'line-past', label: 'Balance so far' },
      { mark: 'line-future', label: 'What time alone will do: expiries and renewals' },
    ]),
    table: tableOf(balance),
    draw: (paper) => drawn(balance, paper),
  });
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function drawn({ past, now, future, end }: BalanceOverTime, paper: Paper): string {
  const from = (past[0] as Step).at;
  const x = scaleUtc().domain([from, end]).range([paper.left, paper.right]);
  const y = creditScale(paper, 0, Math.max(...past.concat(future).map(({ balance }) => balance)));
  const points = (steps: readonly Step[], until: number): Point[] =>
    thinned(steps.concat({ at: until, balance: (steps.at(-1) as Step).balance })).map(({ at, balance }) => ({
      x: round(x(at)),
      y: round(y(balance)),
    }));
  const stroke = line<Point>(
    (point) => point.x,
    (point) => point.y,
  ).curve(curveStepAfter);
  const fill = area<Point>()
    .x((point) => point.x)
    .y0(paper.bottom)
    .y1((point) => point.y)
    .curve(curveStepAfter);
  const [before, after] = [points(past, now), points(future, end)];
  const nowX = round(x(now));
  const balanceNow = (future[0] as Step).balance;
  const ticks = dayTicks(from, end, now, paper)
    .filter((at) => x(at) > paper.left && x(at) < paper.width - DAY_TICK_HALF)
    .map((at) => dayTick(paper, round(x(at)), at));
  return html`!${creditAxis(paper, y)}<path class="area-past" d="${fill(before)}"/><path class="area-future" d="${fill(after)}"/><path class="line-past" d="${stroke(before)}"/><path class="line-future" d="${stroke(after)}"/><path class="now" d="M${nowX} ${paper.top}V${paper.bottom}"/><text class="tick strong" x="${nowX + 6}" y="${paper.top + 9}">Now</text><circle class="dot" cx="${nowX}" cy="${round(y(balanceNow))}" r="4"><title>${figure(balanceNow)} now</title></circle>!${ticks}`;
}

/** Days in equal steps, counted from today, so that today always has its name. */
function dayTicks(from: Instant, end: Instant, now: Instant, { dayTicks: wanted }: Paper): Instant[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const step = Math.max(1, Math.ceil((end - from) / DAY_MS / wanted)) * DAY_MS;
  const first = today - Math.floor((today - from) / step) * step;
  return Array.from({ length: Math.floor((end - first) / step) + 1 }, (_, index) => first + index * step);
}

/** Keeps the last step of each stretch of time narrower than a pixel. */
function thinned(steps: readonly Step[]): readonly Step[] {
  if (steps.length <= LINE_STEPS_MAX) return steps;
  const [first, last] = [steps[0], steps.at(-1)] as [Step, Step];
  const width = (last.at - first.at) / LINE_STEPS_MAX;
  const slot = (step: Step | undefined) => Math.floor(((step?.at ?? Number.POSITIVE_INFINITY) - first.at) / width);
  return steps.filter((step, index) => index === 0 || slot(step) !== slot(steps[index + 1]));
}

function tableOf({ past, future }: BalanceOverTime): string {
  const shown = past.slice(-TABLE_STEPS_MAX);
  const before = past[past.length - shown.length - 1];
  const rows = [
    ...future
      .slice(1, TABLE_STEPS_MAX)
      .map((step, index) => rowOf(step, future[index], 'will be'))
      .toReversed(),
    ...shown.map((step, index) => rowOf(step, shown[index - 1] ?? before, 'was')).toReversed(),
  ];
  return html`<table class="table"><thead><tr><th scope="col">From (UTC)</th><th scope="col">Past or to come</th><th scope="col" class="number">Change</th><th scope="col" class="number">Balance</th></tr></thead><tbody>!${rows}</tbody></table>`;
}

function rowOf({ at, balance }: Step, before: Step | undefined, tense: 'was' | 'will be'): string {
  const change = before === undefined ? '' : movement(balance - before.balance);
  return html`<tr><th scope="row">!${moment(at)}</th><td>${tense === 'was' ? 'past' : 'to come'}</td><td class="number">${change}</td><td class="number">${figure(balance)}</td></tr>`;
}
