// Tests docs/decisions: the index is complete, superseded decisions link to their successors, and the decision about
// dependencies matches package.json.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { documents, REPOSITORY, textOf } from './documents.ts';

const FOLDER = 'docs/decisions/';
const decisions = documents().filter((path) => /^docs\/decisions\/\d{4}-/.test(path));

function numberOf(path: string): number {
  return Number(path.slice(FOLDER.length, FOLDER.length + 4));
}

test('the index of the decisions has a row with the number and the title of each decision', () => {
  const expected = decisions.map((path) => {
    const [, number, title] = /^# (\d+)\. (.*)\n/.exec(textOf(path)) ?? [];
    assert.equal(Number(number), numberOf(path), path);
    return `| ${number} | [${title}](${path.slice(FOLDER.length)}) |`;
  });
  assert(expected.length > 25, `${expected.length} decisions`);
  const rows = textOf(`${FOLDER}README.md`).split('\n');
  assert.deepEqual(
    rows.filter((row) => /^\| \d/.test(row)).map((row) => row.split('|').slice(0, 3).join('|').concat('|')),
    expected,
  );
});

test('each superseded decision has a link to its successor below the title, and the index shows the number of the successor', () => {
  const index = textOf(`${FOLDER}README.md`);
  const superseded = decisions.filter((path) => /superseded/i.test(textOf(path)));
  assert(superseded.length >= 4, `${superseded.length} superseded decisions`);
  for (const path of superseded) {
    const [, by = ''] = /^# .*\n\n_Superseded by \[(\d+)\]\(\d{4}-[a-z-]+\.md\)[.:]/.exec(textOf(path)) ?? [];
    assert.notEqual(by, '', path);
    assert(index.includes(`(${path.slice(FOLDER.length)}) | Superseded by ${by} |`), path);
  }
});

test('the decision about dependencies lists exactly the packages in package.json', () => {
  const { dependencies, devDependencies } = JSON.parse(textOf('package.json'));
  const [atRunTime = '', forDevelopment = ''] = textOf(`${FOLDER}0008-dependencies.md`).split('For development:');
  const listed = (text: string) =>
    [...text.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
  assert.deepEqual(listed(atRunTime).toSorted(), Object.keys(dependencies).toSorted());
  assert.deepEqual(listed(forDevelopment).toSorted(), Object.keys(devDependencies).toSorted());
});

test('each runtime dependency is imported by a source file', () => {
  const { dependencies } = JSON.parse(textOf('package.json'));
  const args = ['grep', '-hoE', `(from|import)( |\\()'[^.'][^']*'`, '--', 'src'];
  const imports = execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' });
  const unused = Object.keys(dependencies).filter((name) => !imports.includes(`'${name}'`));
  assert.deepEqual(unused, []);
});
