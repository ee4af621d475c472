// The only script of the console. Without it all works but copying: its button stays hidden, and the text can be selected;
// and no time is told twice.

for (const button of document.querySelectorAll('button[data-copy]')) {
  const source = document.getElementById(button.dataset.copy);
  const said = document.getElementById(`${button.dataset.copy}-copied`);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      said.textContent = 'Copied.';
    } catch {
      // Browsers give the clipboard to pages from https and loopback only: elsewhere the text is left selected.
      getSelection().selectAllChildren(source);
      said.textContent = 'Selected: press Ctrl+C or ⌘C to copy.';
    }
  });
}

// Times are written in UTC. Whoever points at one is told what it is where they are.
for (const time of document.querySelectorAll('time')) {
  time.title = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
}

/** As long as an answer may take before somebody rightly tries again. */
const ANSWER_MS = 5_000;

// A second click would have the browser drop the answer to the first, and that may be the one with the secret. Without
// this, the server still does it once.
for (const form of document.querySelectorAll('form[method="post"]')) {
  let isSent = false;
  const allow = () => {
    isSent = false;
  };
  form.addEventListener('submit', (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
    setTimeout(allow, ANSWER_MS);
  });
  // Whoever comes back to the page may send the form again.
  addEventListener('pageshow', allow);
}
