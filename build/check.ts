// Types and lint in parallel: each of these programs leaves a core idle at times.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const { resolve } = createRequire(import.meta.url);
// Checkers share the work, but each infers most types again: four take 1.6 times the processor time of one.
const tsc = [
  join(dirname(resolve('typescript/package.json')), 'bin', 'tsc'),
  '--noEmit',
  '--checkers',
  '1',
  '--incremental',
];
const biome = join(dirname(resolve('@biomejs/biome/package.json')), 'bin', 'biome');
const root = join(import.meta.dirname, '..');
// Incremental: a check of few changes takes a fifth of the time.
const remembered = join(root, 'node_modules', '.cache', 'typescript', 'all.tsbuildinfo');
const programs = [
  // The console's tests load most of the service, so two programs would check that twice. biome.json says what a
  // browser alone has.
  [...tsc, '--tsBuildInfoFile', remembered],
  [biome, 'ci', '--error-on-warnings', '.'],
];

const results = programs.map(async (args) => {
  const { promise, resolve: end } = Promise.withResolvers<boolean>();
  execFile(process.execPath, args, { cwd: root, maxBuffer: 1e8 }, (error, stdout, stderr) => {
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    end(error === null);
  });
  return await promise;
});
if ((await Promise.all(results)).includes(false)) process.exitCode = 1;
