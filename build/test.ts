// Types and lint run beside the tests, which wait for servers and browsers and leave the cores idle a sixth of the
// time.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants, setPriority } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

async function run(
  command: string,
  args: readonly string[],
  { priority, ...options }: { shell?: boolean; priority?: number } = {},
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
  // Its child processes inherit the priority.
  if (priority !== undefined && child.pid !== undefined) setPriority(child.pid, priority);
  child.once('error', () => resolve(false)).once('exit', (code) => resolve(code === 0));
  return await promise;
}

async function runTests(): Promise<boolean> {
  const isBuilt = await run('npm run build --workspace clients/typescript', [], { shell: true });
  return isBuilt && (await run(process.execPath, [vitest, 'run', ...process.argv.slice(2)]));
}

// The check gets what the tests leave: they decide how long the run takes.
const check = run(process.execPath, [join(import.meta.dirname, 'check.ts')], {
  priority: constants.priority.PRIORITY_LOW,
});
const results = await Promise.all([check, runTests()]);
if (results.includes(false)) process.exitCode = 1;
