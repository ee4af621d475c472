// The only script of the console. Without it, everything works except copying by button and local times.

for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  const status = document.getElementById(`${button.dataset.copy}-copied`);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      status.textContent = 'Copied.';
    } catch {
      // Browsers allow clipboard access only over HTTPS and on loopback: elsewhere the text is selected instead.
      getSelection().selectAllChildren(source);
      status.textContent = 'Press Ctrl+C or ⌘C to copy.';
    }
  });
}

// Pages show times in UTC. The tooltip shows the local time.
for (const time of document.querySelectorAll('time')) {
  time.title = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
}

/** After this, a form may be sent again: the response is taking unusually long. */
const RESEND_AFTER_MS = 5_000;

// On a second click, browsers drop the response to the first one, which may be the only one with a secret. The server
// deduplicates forms as well.
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
  // The user has come back to the page.
  addEventListener('pageshow', allow);
}
