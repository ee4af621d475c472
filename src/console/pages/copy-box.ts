// Text that the user copies and that is shown only once, with a copy button if the browser runs scripts.

import { html } from 'ghtml';

export interface CopyBox {
  /** Unique on its page. */
  readonly id: string;
  readonly label: string;
  readonly text: string;
}

export function copyBox({ id, label, text }: CopyBox): string {
  return html`<p class="label" id="${id}-label">${label}</p>
<div class="copy-row"><code class="secret" id="${id}" role="group" aria-labelledby="${id}-label">${text}</code>
<button class="button" type="button" data-copy="${id}" hidden>Copy</button></div>
<p class="muted small" id="${id}-copied" role="status"></p>`;
}
