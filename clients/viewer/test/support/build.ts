import { rmSync } from 'node:fs';
import { copyFile, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';

const root = join(import.meta.dirname, '..', '..');

/** The component, which a run of tests builds where its sources have changed. */
export const builtViewer = join(root, 'dist', 'viewer.js');

let folder: Promise<string> | undefined;

/**
 * Builds pages that hold the component, once for a process. Returns the folder with both, which ends with the process.
 */
export function buildHosts(): Promise<string> {
  folder ??= buildIntoFolder();
  return folder;
}

async function buildIntoFolder(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), 'annals-viewer-'));
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true }));
  await copyFile(builtViewer, join(outDir, 'viewer.js'));
  const hosts = join(root, 'test', 'hosts');
  await build({
    root: hosts,
    configFile: false,
    logLevel: 'warn',
    define: {
      __VUE_OPTIONS_API__: false,
      __VUE_PROD_DEVTOOLS__: false,
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: false,
    },
    build: {
      outDir,
      emptyOutDir: false,
      minify: false,
      rolldownOptions: {
        input: ['html', 'react', 'vue'].map((name) => join(hosts, `${name}.js`)),
        output: { entryFileNames: '[name].js', chunkFileNames: '[name].js' },
      },
    },
  });
  return outDir;
}
