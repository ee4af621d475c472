// The paths of the webhook pages, and the tabs that link to the list of endpoints and to the thresholds.

import { html } from 'ghtml';

export const WEBHOOKS_PATH = '/console/webhooks';
export const THRESHOLDS_PATH = '/console/thresholds';

export function endpointPath(id: number): string {
  return `${WEBHOOKS_PATH}/${id}`;
}

export function deliveryPath(endpoint: number, delivery: string): string {
  return `${endpointPath(endpoint)}/deliveries/${encodeURIComponent(delivery)}`;
}

const TABS = [
  [WEBHOOKS_PATH, 'Endpoints'],
  [THRESHOLDS_PATH, 'Thresholds'],
] as const;

export function sectionTabs(current: (typeof TABS)[number][0]): string {
  const links = TABS.map(
    ([path, label]) => html`<a href="${path}"!${path === current ? ' aria-current="page"' : ''}>${label}</a>`,
  );
  return html`<nav class="tabs" aria-label="Webhooks">!${links}</nav>`;
}
