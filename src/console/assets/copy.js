// The only script of the console: a button that copies. Without it the button stays hidden and the text can be selected.

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
