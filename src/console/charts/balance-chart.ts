// Draws the balance of an end user as a step line: solid for the past, dashed for the projection.

import assert from 'node:assert/strict';
import { scaleUtc } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { html } from 'ghtml';
import type { BalancePoint } from '../../ledger/history.ts';
import { DAY_MS, HOUR_MS, INSTANT_MAX, type Instant } from '../../ledger/instant.ts';
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

const PAST_DAYS = 30;
const FUTURE_DAYS = 31;
/** The time between two points of the chart, chosen so that there is about one point per pixel. */
const INTERVAL_MS = 3 * HOUR_MS;

export interface BalanceOverTime {
  /** Oldest first. The last point is the current balance. */
  readonly past: readonly BalancePoint[];
  /** Oldest first. The first point is the current balance. */
  readonly future: readonly BalancePoint[];
}

/** Returns the instants to draw before and after `now`, oldest first, including the start of each UTC day. */
export function chartInstants(now: Instant): {
  readonly past: readonly Instant[];
  readonly future: readonly Instant[];
} {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const first = today - PAST_DAYS * DAY_MS;
  const count = ((PAST_DAYS + 1 + FUTURE_DAYS) * DAY_MS) / INTERVAL_MS + 1;
  const instants = Array.from({ length: count }, (_, index) => first + index * INTERVAL_MS);
  return {
    past: instants.filter((at) => at >= 0 && at < now),
    future: instants.filter((at) => at > now && at <= INSTANT_MAX),
  };
}

export function balanceChart({ past, future }: BalanceOverTime): string {
  const [first, now, last] = [past[0], future[0], future.at(-1)] as [BalancePoint, BalancePoint, BalancePoint];
  assert(past.at(-1)?.at === now.at, 'the last point of the past is the first point of the projection');
  const most = Math.max(...past.map(({ balance }) => balance));
  const isLogarithmic = needsLogarithm([...past, ...future].map(({ balance }) => balance));
  return chartFigure({
    id: 'balance',
    title: 'Balance over time',
    description: `Balance on ${shortDayText(first.at)} (UTC): ${numberText(first.balance)}. Peak: ${numberText(most)}. Now: ${numberText(now.balance)}. Projected balance on ${shortDayText(last.at)} (UTC): ${numberText(last.balance)}, including the effects of expiring credits, renewals, plan changes and lapsing holds.`,
    legend: legendOf(
      [
        { mark: 'line-past', label: 'Balance' },
        {
          mark: 'line-future',
          label: 'Projected, including expiring credits, renewals, plan changes and lapsing holds',
        },
      ],
      isLogarithmic,
    ),
    table: tableOf({ past, future }),
    draw: (size) => linesOf({ past, future }, size, isLogarithmic),
  });
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function linesOf({ past, future }: BalanceOverTime, wanted: PlotSize, isLogarithmic: boolean): string {
  const balances = past.concat(future).map(({ balance }) => balance);
  const { size, y, axis } = creditPlot(wanted, balances, isLogarithmic);
  const [from, now, end] = [past[0], future[0], future.at(-1)].map((point) => point?.at) as [number, number, number];
  const x = scaleUtc().domain([from, end]).range([size.left, size.right]);
  const points = (drawn: readonly BalancePoint[]): Point[] =>
    changesOf(drawn).map(({ at, balance }) => ({ x: round(x(at)), y: y(balance) }));
  const stroke = line<Point>(
    (point) => point.x,
    (point) => point.y,
  ).curve(curveStepAfter);
  const fill = area<Point>()
    .x((point) => point.x)
    .y0(size.bottom)
    .y1((point) => point.y)
    .curve(curveStepAfter);
  const [before, after] = [points(past), points(future)];
  const nowX = round(x(now));
  const balanceNow = (future[0] as BalancePoint).balance;
  const ticks = dayTicks(from, end, now, size)
    .filter((at) => x(at) > size.left && x(at) < size.width - DAY_TICK_HALF_WIDTH)
    .map((at) => dayTick(size, round(x(at)), shortDayText(at)));
  return html`!${axis}<path class="area-past" d="${fill(before)}"/><path class="area-future" d="${fill(after)}"/><path class="line-past" d="${stroke(before)}"/><path class="line-future" d="${stroke(after)}"/><path class="now" d="M${nowX} ${size.top}V${size.bottom}"/><text class="tick strong" x="${nowX + 6}" y="${size.top + 9}">Now</text><circle class="dot" cx="${nowX}" cy="${y(balanceNow)}" r="4"><title>${numberText(balanceNow)} now</title></circle>!${ticks}`;
}

function changesOf(points: readonly BalancePoint[]): readonly BalancePoint[] {
  return points.filter(({ balance }, index) => index === points.length - 1 || balance !== points[index - 1]?.balance);
}

/** The first tick is a whole number of steps before today, so that today always has a tick. */
function dayTicks(from: Instant, end: Instant, now: Instant, { dayTicks: wanted }: PlotSize): Instant[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const step = Math.max(1, Math.ceil((end - from) / DAY_MS / wanted)) * DAY_MS;
  const first = today - Math.floor((today - from) / step) * step;
  return Array.from({ length: Math.floor((end - first) / step) + 1 }, (_, index) => first + index * step);
}

function tableOf({ past, future }: BalanceOverTime): string {
  const now = (future[0] as BalancePoint).at;
  const shown = past.concat(future.slice(1)).filter(({ at }) => at === now || at % DAY_MS === 0);
  const hasHeld = shown.some(({ held }) => held > 0);
  const rows = shown.map((point, index) => {
    const before = shown[index - 1];
    const change = before === undefined ? '' : signedText(point.balance - before.balance);
    const tense = point.at > now ? 'projected' : point.at === now ? 'now' : 'past';
    const held = hasHeld ? html`<td class="number">${numberText(point.held)}</td>` : '';
    return html`<tr><th scope="row">!${moment(point.at)}</th><td>${tense}</td><td class="number">${change}</td><td class="number">${numberText(point.balance)}</td>!${held}</tr>`;
  });
  const heldHeading = hasHeld ? '<th scope="col" class="number">Held</th>' : '';
  return html`<table class="table"><thead><tr><th scope="col">Time!${UTC_MARK}</th><th scope="col">Past or projected</th><th scope="col" class="number">Change</th><th scope="col" class="number">Balance</th>!${heldHeading}</tr></thead><tbody>!${rows.toReversed()}</tbody></table>`;
}
