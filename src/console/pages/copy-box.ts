// A box with a secret or a link that the console shows only once. In browsers that run scripts, the box has a copy
// button.

import { html } from 'ghtml';

interface CopyBox {
  /** Unique on its page. */
  readonly id: string;
  /** Trusted HTML. */
  readonly label: string;
  readonly text: string;
}

export function copyBox({ id, label, text }: CopyBox): string {
  return html`<p class="label" id="${id}-label">!${label}</p>
<div class="copy-row"><code class="secret" id="${id}" role="group" aria-labelledby="${id}-label">${text}</code>
<button class="button" type="button" data-copy="${id}" hidden>Copy</button></div>
<p class="muted small" id="${id}-copied" role="status"></p>`;
}
