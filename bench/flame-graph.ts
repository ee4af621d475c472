// Draws a call tree as a flame graph in one SVG file.

import type { Frame } from './cpu-profile.ts';

const WIDTH = 1_400;
const BAR_HEIGHT = 17;
const CHARACTER_WIDTH = 6.4;
const HEAD = 34;
const WIDTH_MIN = 0.7;

const COLORS: readonly (readonly [pattern: RegExp, color: string])[] = [
  [/^$/, '#b9bec7'],
  [/^node:/, '#8fb7d9'],
  [/^ledger\//, '#7cc48a'],
  [/^store\//, '#e0a458'],
  [/^batching\//, '#c99be0'],
  [/^http\//, '#e58a8a'],
];
const OTHER = '#d9d3a7';

export function flameGraph(root: Frame, { title, requests }: { title: string; requests: number }): string {
  const depth = depthOf(root, root.total);
  const height = HEAD + (depth + 1) * BAR_HEIGHT;
  const bars: string[] = [];
  const draw = (frame: Frame, x: number, level: number): void => {
    const width = (frame.total / root.total) * WIDTH;
    if (width < WIDTH_MIN) return;
    bars.push(barOf(frame, { x, y: height - (level + 1) * BAR_HEIGHT, width }, requests));
    let at = x;
    for (const child of frame.children.toSorted((a, b) => b.total - a.total)) {
      draw(child, at, level + 1);
      at += (child.total / root.total) * WIDTH;
    }
  };
  draw(root, 0, 0);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}">
<style>text { font: 10.5px ui-monospace, monospace; fill: #1f2328 } rect { stroke: #fff; stroke-width: .5 } rect:hover { stroke: #000 }</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="6" y="18" style="font-size: 13px">${escaped(title)}</text>
${bars.join('\n')}
</svg>
`;
}

function barOf(
  { name, place, self, total }: Frame,
  { x, y, width }: { x: number; y: number; width: number },
  requests: number,
): string {
  const micros = (time: number) => `${(time / requests).toFixed(2)} µs`;
  const tip = `${name} ${place}: ${micros(total)} per request, ${micros(self)} in the function itself`;
  const room = Math.floor((width - 4) / CHARACTER_WIDTH);
  const text = room < 3 ? '' : `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escaped(name.slice(0, room))}</text>`;
  const color = COLORS.find(([pattern]) => pattern.test(place))?.[1] ?? OTHER;
  const bar = `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" fill="${color}"/>`;
  return `<g><title>${escaped(tip)}</title>${bar}${text}</g>`;
}

function depthOf(frame: Frame, whole: number): number {
  if ((frame.total / whole) * WIDTH < WIDTH_MIN) return 0;
  return 1 + Math.max(0, ...frame.children.map((child) => depthOf(child, whole)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
