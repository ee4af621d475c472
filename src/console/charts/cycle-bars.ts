// Two bars for a cycle: how much of what it started with remains, and how much of its time. Their words stand beside
// them, so the bars are for the eye alone.

import { html } from 'ghtml';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Instant } from '../../ledger/instant.ts';
import { round } from './plot.ts';

const LENGTH = 120;

export function remainingBar({ remaining, amount }: Cycle): string {
  return bar(remaining / amount, 'bar-credits');
}

export function timeLeftBar({ start, end }: Cycle, now: Instant): string {
  return bar((end - now) / (end - start), 'bar-time');
}

function bar(share: number, kind: string): string {
  const within = Math.min(Math.max(share, 0), 1);
  // What is left of something is never nothing to the eye.
  const length = within === 0 ? 0 : Math.max(round(within * LENGTH), 2);
  return html`<svg class="meter" viewBox="0 0 ${LENGTH} 6" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-track" width="${LENGTH}" height="6"/><rect class="${kind}" width="${length}" height="6"/></svg>`;
}
