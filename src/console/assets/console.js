// The console's only script. Without it, the copy buttons are hidden and times are in UTC; everything else works.

for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  const status = document.getElementById(`${button.dataset.copy}-copied`);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      status.textContent = 'Copied.';
    } catch {
      // Browsers allow clipboard access only over HTTPS and on loopback. Elsewhere, select the text, so that the user
      // can copy it.
      getSelection().selectAllChildren(source);
      status.textContent = 'Press Ctrl+C or ⌘C to copy.';
    }
  });
}

/**
 * The format for each `data-precision`. Formatted times are in English, like the pages, and about as wide as the times
 * that the server writes.
 */
const LOCAL = {
  day: { dateStyle: 'medium' },
  minute: { dateStyle: 'medium', timeStyle: 'short' },
  second: { dateStyle: 'medium', timeStyle: 'medium' },
  zoned: { dateStyle: 'medium', timeStyle: 'long' },
};
const utc = new Intl.DateTimeFormat('en-GB', { ...LOCAL.second, timeZone: 'UTC' });

// The server writes times in UTC. This loop replaces them with local times, and puts the UTC times into tooltips.
for (const time of document.querySelectorAll('time[data-precision]')) {
  const at = new Date(time.dateTime);
  time.title = `${utc.format(at)} UTC`;
  time.textContent = new Intl.DateTimeFormat('en-GB', LOCAL[time.dataset.precision]).format(at);
}
document.documentElement.classList.add('local-times');

/** After this time without a response, the user can send the form again. */
const RESEND_AFTER_MS = 5_000;

// Ignore a second click on a form's button. Otherwise, browsers would discard the response to the first click, and only
// that response shows a new secret. The server also detects forms that are sent twice.
for (const form of document.querySelectorAll('form[method="post"]')) {
  let isSent = false;
  const allow = () => {
    isSent = false;
  };
  form.addEventListener('submit', (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
    setTimeout(allow, RESEND_AFTER_MS);
  });
  // Allow the form to be sent again when the user navigates back to the page.
  addEventListener('pageshow', allow);
}
