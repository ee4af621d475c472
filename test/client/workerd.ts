// Runs essentials.ts in workerd, the runtime of Cloudflare Workers. npx downloads workerd from the npm registry.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../http/running-service.ts';
import { freePort } from '../store/postgres/postgres-server.ts';

export const WORKERD = 'workerd@latest';

const WORKER = `import { runChecks } from './checks.mjs';
export default { fetch: async () => new Response(await runChecks()) };
`;
const CLIENT_MODULES = 'node_modules/scrip-client/dist';

/** @param folder contains the unpacked client and `checks.mjs` */
export async function runInWorkerd(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const port = await freePort();
  await writeFile(join(folder, 'worker.mjs'), WORKER);
  await writeFile(join(folder, 'workerd.capnp'), await configuration(folder, port));
  const args = ['--yes', WORKERD, 'serve', 'workerd.capnp'];
  // With its own process group, workerd can be stopped together with npx.
  const npx = spawn('npx', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  try {
    let output = '';
    await eventually(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
      output = (await response?.text()) ?? '';
      return response !== null;
    }, 'workerd has responded');
    return output;
  } finally {
    process.kill(-(npx.pid as number));
    await once(npx, 'exit');
  }
}

async function configuration(folder: string, port: number): Promise<string> {
  const files = (await readdir(join(folder, CLIENT_MODULES))).filter((name) => name.endsWith('.js'));
  const modules = [
    ...['worker.mjs', 'checks.mjs', 'essentials.mjs'].map((name) => [name, name]),
    ['scrip-client', `${CLIENT_MODULES}/scrip.js`],
    ...files.map((name) => [name, `${CLIENT_MODULES}/${name}`]),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "local", network = (allow = ["local", "private"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  compatibilityDate = "2026-11-01",
  globalOutbound = "local",
  modules = [${modules.map(([name, path]) => `(name = "${name}", esModule = embed "${path}")`).join(', ')}],
);
`;
}
