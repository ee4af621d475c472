// Builds a Dockerfile in a folder, without a container engine. Absolute paths in commands must be literal, because the
// build finds them in the text and prefixes each with the path of the stage's folder. Under `npm test`, the build
// runs `npm ci --dry-run`, and copies the packages from the repository instead of installing them.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { IS_LONG } from '../effort.ts';
import { npmNetwork } from './npm-network.ts';
import { omitTypeCheck } from './unchecked-build.ts';

export interface Image {
  readonly root: string;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** If `user` is null, commands run as root. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  readonly settings: ReadonlyMap<string, string>;
}

interface Stage {
  readonly name: string;
  readonly root: string;
  workingFolder: string;
  user: Image['user'];
  readonly environment: Record<string, string>;
  readonly settings: Map<string, string>;
}

const STEP_MS_MAX = 180_000;
const SETTINGS = new Set(['VOLUME', 'EXPOSE', 'HEALTHCHECK', 'STOPSIGNAL', 'ENTRYPOINT', 'CMD']);
const ROOT_PATH = /(?<=^|[\s=:"'])\/(?=\w)/g;

export function inRoot(text: string, root: string): string {
  return text.replaceAll(ROOT_PATH, `${root}/`);
}

export function instructionsOf(dockerfile: string): readonly (readonly [name: string, text: string])[] {
  assert.doesNotMatch(dockerfile, /^# *syntax *=/im, 'a syntax directive needs BuildKit');
  const lines = dockerfile
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', text = ''] = /^([A-Z]+) +(.*)$/.exec(line) ?? assert.fail(`not an instruction: ${line}`);
      assert.doesNotMatch(text, /<<-?["']?\w/, `a here-document needs BuildKit: ${line}`);
      return [name, text] as const;
    });
}

/** @param folder must be empty */
export async function buildDockerfile(context: string, folder: string): Promise<Image> {
  const stages: Stage[] = [];
  for (const [name, text] of instructionsOf(readFileSync(join(context, 'Dockerfile'), 'utf8'))) {
    const stage = stages.at(-1);
    if (name === 'FROM') stages.push(begin(text, join(folder, `stage-${stages.length}`)));
    else if (stage === undefined) assert.fail('the first instruction is not FROM');
    else if (name === 'WORKDIR') enter(stage, text);
    else if (name === 'ENV') Object.assign(stage.environment, variablesOf(text));
    else if (name === 'USER') stage.user = userOf(text);
    else if (name === 'COPY') copy(stage, text, { context, stages });
    else if (name === 'RUN') await runIn(stage, text, context);
    else if (SETTINGS.has(name)) stage.settings.set(name, text);
    else assert.fail(`unknown instruction ${name}`);
  }
  return stages.at(-1) ?? assert.fail('there is no stage');
}

function begin(text: string, root: string): Stage {
  const [, name = ''] = /^node:\S+(?: AS (\w+))?$/.exec(text) ?? assert.fail(`not a Node.js image: ${text}`);
  const commands = join(root, 'usr/local/bin');
  mkdirSync(commands, { recursive: true });
  linkOrCopy(process.execPath, join(commands, 'node'));
  const settings = new Map<string, string>();
  return { name, root, workingFolder: root, user: null, environment: {}, settings };
}

/** Prefers a hard link. With a symbolic link, the user of the image may not be able to read the original file. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

function enter(stage: Stage, path: string): void {
  stage.workingFolder = inRoot(path, stage.root);
  mkdirSync(stage.workingFolder, { recursive: true });
}

function variablesOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .trim()
      .split(/\s+/)
      .map((pair) => pair.split(/=(.*)/s, 2) as [string, string]),
  );
}

/** Rejects user and group names, because only the image's user database could resolve them. */
function userOf(text: string): Image['user'] {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(text) ?? assert.fail(`not a numeric user and group: ${text}`);
  return { uid: Number(uid), gid: Number(gid) };
}

function copy(
  stage: Stage,
  text: string,
  { context, stages }: { readonly context: string; readonly stages: readonly Stage[] },
): void {
  const words = text.split(' ');
  const flags = words.filter((word) => word.startsWith('--'));
  const sources = words.filter((word) => !word.startsWith('--'));
  const target = sources.pop() ?? assert.fail(text);
  const [from] = flags.map((flag) => /^--from=(\w+)$/.exec(flag)?.[1] ?? assert.fail(`${flag} needs BuildKit`));
  const origin =
    from === undefined ? null : (stages.find(({ name }) => name === from) ?? assert.fail(`no stage ${from}`));
  const at = target.startsWith('/') ? inRoot(target, stage.root) : join(stage.workingFolder, target);
  if (target.endsWith('/')) mkdirSync(at, { recursive: true });
  for (const source of sources) {
    if (origin === null) assert(isIncluded(context, source), `.dockerignore excludes ${source}`);
    const path = origin === null ? join(context, source) : inRoot(source, origin.root);
    assert(existsSync(path), `COPY ${source}: no such file`);
    // COPY copies the contents of a folder, not the folder itself.
    const isFile = statSync(path).isFile();
    const copied = isFile && target.endsWith('/') ? join(at, basename(path)) : at;
    // Moving thousands of files out of an earlier stage takes less time than copying them.
    if (origin !== null && !existsSync(copied)) renameSync(path, copied);
    else cpSync(path, copied, { recursive: true, verbatimSymlinks: true });
  }
}

function isIncluded(context: string, source: string): boolean {
  const [first, ...names] = readFileSync(join(context, '.dockerignore'), 'utf8').trim().split('\n');
  assert.equal(first, '*');
  return names.includes(`!${normalize(source)}`);
}

async function runIn(stage: Stage, text: string, context: string): Promise<void> {
  const isShort = text.startsWith('npm ci') && !IS_LONG;
  await execute(stage, isShort ? `${text} --dry-run` : text);
  if (!isShort) return;
  copyPackages(context, stage.workingFolder);
  omitTypeCheck(stage.workingFolder);
}

const COMPILER = /^node_modules\/(?:typescript|@typescript\/.+|@types\/node|undici-types)$/;
const NOT_NEEDED_TO_RUN = /\.(?:d\.[cm]?ts|map|md)$/;

/** Copies the packages that the build and the built program need. */
function copyPackages(from: string, to: string): void {
  const { packages } = JSON.parse(readFileSync(join(to, 'package-lock.json'), 'utf8'));
  for (const path of Object.keys(packages)) {
    const isCompiler = COMPILER.test(path);
    if (path === '' || !existsSync(join(from, path)) || (packages[path].dev && !isCompiler)) continue;
    mkdirSync(dirname(join(to, path)), { recursive: true });
    const filter = (file: string) => isCompiler || !NOT_NEEDED_TO_RUN.test(file);
    cpSync(join(from, path), join(to, path), { recursive: true, verbatimSymlinks: true, filter });
  }
}

async function execute({ root, workingFolder, environment }: Stage, text: string): Promise<void> {
  assert(!text.startsWith('--'), `${text.split(' ')[0]} needs BuildKit`);
  // Only root may change the owner of a file.
  const isRoot = process.getuid?.() === 0;
  const command = inRoot(isRoot ? text : text.replaceAll(/\bchown \S+/g, 'chown "$(id -u):$(id -g)"'), root);
  const env = { ...baseEnvironment(root), ...environment };
  const done = promisify(execFile)('sh', ['-ec', command], { cwd: workingFolder, env, timeout: STEP_MS_MAX });
  await done.catch(({ stdout, stderr }) => assert.fail(`RUN ${text}\n${stdout}${stderr}`));
}

export function baseEnvironment(root: string): NodeJS.ProcessEnv {
  const { PATH = '', HOME, TMPDIR } = process.env;
  const path = PATH.split(':').filter((part) => !part.includes('node_modules'));
  return {
    PATH: [join(root, 'usr/local/bin'), ...path].join(':'),
    HOME,
    TMPDIR,
    npm_config_prefer_offline: 'true',
    npm_config_loglevel: 'error',
    ...npmNetwork(),
  };
}
