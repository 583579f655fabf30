// Packs @annals/client and tries it as its users would: in an empty project under Node 20, 22 and 26 against a running demo,
// and bundled for a browser, in a context that has what browsers have and nothing of Node.
// node bench/client/run.ts
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const environment = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
const nodes = [20, 22, 26];
const platform = `node-${process.platform}-${process.arch}`;

const folder = await mkdtemp(join(tmpdir(), 'annals-client-'));
const demo = await startDemo();
try {
  const tarball = await pack();
  await install(tarball);
  for (const version of nodes) {
    const node = join(folder, 'node_modules', `node${version}`, 'bin', 'node');
    const { stdout } = await run(node, ['consumer.js'], { cwd: folder, env: { ...environment, ...demo.variables } });
    process.stdout.write(stdout);
  }
  console.log(`packed: ${(await stat(join(folder, tarball))).size} bytes`);
  for (const entries of [['', '/query', '/json'], [''], ['/query'], ['/json']]) await reportBundle(entries);
  console.log('bundled, without globals of Node:', await callFromBrowser());
} finally {
  await demo.end();
  await rm(folder, { recursive: true });
}

async function pack(): Promise<string> {
  await run('npm', ['pack', '--pack-destination', folder], {
    cwd: join(root, 'clients', 'typescript'),
    env: environment,
  });
  const [tarball = ''] = await readdir(folder);
  return tarball;
}

async function install(tarball: string): Promise<void> {
  const dependencies = Object.fromEntries(nodes.map((version) => [`node${version}`, `npm:${platform}@${version}`]));
  const project = {
    type: 'module',
    dependencies: { ...dependencies, '@annals/client': `file:${tarball}`, esbuild: '^0.28.0' },
  };
  await writeFile(join(folder, 'package.json'), JSON.stringify(project));
  await copyFile(join(root, 'bench', 'client', 'consumer.js'), join(folder, 'consumer.js'));
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--force'], {
    cwd: folder,
    env: environment,
  });
}

async function bundle(source: string, options: readonly string[]): Promise<Buffer> {
  await writeFile(join(folder, 'entry.js'), source);
  const arguments_ = ['entry.js', '--bundle', '--minify', '--platform=browser', '--outfile=bundle.js', ...options];
  await run(process.execPath, [join(folder, 'node_modules', 'esbuild', 'bin', 'esbuild'), ...arguments_], {
    cwd: folder,
  });
  return await readFile(join(folder, 'bundle.js'));
}

async function reportBundle(entries: readonly string[]): Promise<void> {
  const source = entries.map((entry) => `export * from '@annals/client${entry}';`).join('\n');
  const code = await bundle(source, ['--format=esm']);
  const names = entries.map((entry) => `@annals/client${entry}`).join(', ');
  console.log(`${names}: ${code.length} bytes minified, ${gzipSync(code, { level: 9 }).length} gzipped`);
}

/** One call, in a context with globals that every browser has. */
async function callFromBrowser(): Promise<unknown> {
  const source = `import { Annals } from '@annals/client';
    import { entity } from '@annals/client/query';
    result = new Annals(options).history.list({ q: entity('product'), size: 1 }).then((page) => page.totalElements > 0);`;
  const code = await bundle(source, ['--format=iife']);
  const { ANNALS_URL: baseUrl, ANNALS_CLIENT_ID: clientId, ANNALS_CLIENT_SECRET: clientSecret } = demo.variables;
  const context = createContext({
    options: { baseUrl, tenant: 'demo', clientId, clientSecret },
    result: undefined,
    ...{
      fetch,
      Headers,
      URLSearchParams,
      AbortController,
      ReadableStream,
      TextDecoder,
      crypto,
      setTimeout,
      clearTimeout,
    },
  });
  runInContext(code.toString(), context);
  return await Reflect.get(context, 'result');
}

async function startDemo() {
  const data = join(await mkdtemp(join(tmpdir(), 'annals-demo-')), 'data');
  const service = spawn(process.execPath, [join(root, 'bin', 'annals.js'), 'demo'], {
    env: { ...environment, PORT: '0', ANNALS_DATA_DIR: data, LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const variables: Record<string, string> = { ANNALS_TENANT: 'demo' };
  for await (const line of createInterface(service.stdout)) {
    const [, name, value] = /^export (ANNALS_\w+)='?([^']*)'?$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) variables[name] = value;
    if (variables.ANNALS_URL && variables.ANNALS_CLIENT_ID && variables.ANNALS_CLIENT_SECRET) break;
  }
  return {
    variables,
    async end() {
      service.kill('SIGTERM');
      await once(service, 'exit');
      await rm(dirname(data), { recursive: true });
    },
  };
}
