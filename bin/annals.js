#!/usr/bin/env node
// Runs Annals on the Node that the npm package "node" brings, whatever the machine has. Plain JavaScript of old,
// since an old Node must be able to read it.
import { spawn } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const neededMajor = 26;
const pipeVariable = 'ANNALS_LAUNCHER_PIPE';
// "spawn" or "execve": go by that way even where this Node would do. For tests.
const wayVariable = 'ANNALS_LAUNCHER_WAY';

const thisFile = fileURLToPath(import.meta.url);
const way = process.env[wayVariable];
delete process.env[wayVariable];

if (Number(process.versions.node.split('.')[0]) >= neededMajor && way === undefined) {
  runHere();
} else {
  const node = findNode();
  const args = [thisFile].concat(process.argv.slice(2));
  if (node === undefined) {
    process.exitCode = 1;
  } else if (typeof process.execve === 'function' && process.platform !== 'win32' && way !== 'spawn') {
    process.execve(node, [node].concat(args), process.env);
  } else {
    runThere(node, args);
  }
}

function runHere() {
  keepCompiledCode();
  stopWithLauncher();
  stopWithNpx();
  // Stacks name the lines of the sources. Node reads a map only when it has a stack to write.
  process.setSourceMapsEnabled(true);
  // A fault of the import, or of the program, ends the process as an unhandled rejection.
  void bundleFolder()
    .then((folder) => import(pathToFileURL(join(folder, 'main.js')).href))
    .then(({ main }) => main(process.argv.slice(2), process.env));
}

/** A package has its bundle; a checkout has the one of its sources as they are now. */
async function bundleFolder() {
  const root = join(dirname(thisFile), '..');
  if (!existsSync(join(root, 'src'))) return join(root, 'dist');
  const { bundleOfCheckout } = await import('../build/checkout.js');
  return await bundleOfCheckout(root);
}

/**
 * Node keeps what it has compiled in the user's cache folder: the next start takes a part of the time.
 * Node itself tells versions of Node and of each file apart. Whoever can write the folder could run code as this user, so
 * it is used only where nobody else can.
 */
function keepCompiledCode() {
  const folder = join(userCacheFolder(), 'annals', 'compiled');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const status = lstatSync(folder);
    if (!status.isDirectory()) return;
    if (process.platform !== 'win32' && (status.uid !== process.getuid() || (status.mode & 0o022) !== 0)) return;
    module.enableCompileCache(folder);
  } catch {
    // No such folder can be made: this start takes as long as the first.
    return;
  }
  // Node writes the cache when the process ends; a service may be killed instead.
  setTimeout(() => module.flushCompileCache(), 10_000).unref();
}

function userCacheFolder() {
  if (process.platform === 'win32') return process.env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches');
  const given = process.env.XDG_CACHE_HOME ?? '';
  return isAbsolute(given) ? given : join(homedir(), '.cache');
}

/** The Node of the npm package; where its binary is missing, says so and what to do. */
function findNode() {
  let expected = join(dirname(thisFile), '..', 'node_modules', 'node', 'bin', 'node');
  try {
    const folder = dirname(createRequire(import.meta.url).resolve('node/package.json'));
    expected = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  } catch {
    // Not installed at all: the advice is the same.
  }
  if (existsSync(expected)) return expected;
  process.stderr.write(
    `annals: needs Node ${neededMajor}; this is ${process.version}, and the one that the npm package "node" brings is ` +
      `missing (${expected}). Its install script puts it there: run "npm rebuild node" with install scripts allowed, ` +
      `or use Node ${neededMajor} or later.\n`,
  );
  return undefined;
}

/** Where a process cannot become another one, a second one is run, and this one passes signals and the exit on. */
function runThere(node, args) {
  // When this process is killed, the other end of the fourth stream ends, and the child stops by itself.
  const child = spawn(node, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: Object.assign({}, process.env, { [pipeVariable]: '3' }),
  });
  child.stdio[3].on('error', () => {});
  const forward = (signal) => child.kill(signal);
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  child.on('error', (error) => {
    process.stderr.write(`annals: ${node} cannot be run: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    for (const name of signals) process.removeListener(name, forward);
    if (signal === null) process.exit(code);
    process.kill(process.pid, signal);
  });
}

/** Between npx and us stands a shell that dies of the signals which npx passes on to it, and keeps them to itself. */
function stopWithNpx() {
  if (process.env.npm_command !== 'exec' || process.platform === 'win32') return;
  const shell = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    stop();
  }, 250);
  timer.unref();
}

function stopWithLauncher() {
  const descriptor = process.env[pipeVariable];
  delete process.env[pipeVariable];
  if (descriptor !== '3') return;
  const launcher = new Socket({ fd: 3, readable: true, writable: false });
  launcher.on('error', () => {});
  launcher.on('close', stop);
  launcher.resume();
  launcher.unref();
}

/** As a SIGTERM would, on Windows too. */
function stop() {
  if (!process.emit('SIGTERM')) process.exit(143);
}
