import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vite';
import { licences } from '../../build/licences.ts';
import { clientAliases } from '../../console/client-aliases.ts';
import { precompress } from '../../console/precompress.ts';

/**
 * One file without imports and exports: a page takes it as a module or as a script, from a package or from the service.
 */
export default defineConfig({
  root: import.meta.dirname,
  resolve: { alias: clientAliases },
  plugins: [packageFiles(), precompress('.')],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  build: {
    target: 'es2023',
    // Those with light-dark(), so that it stays: the same that have all else of the styles.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: 'dist',
    emptyOutDir: true,
    reportCompressedSize: false,
    lib: { entry: 'src/viewer.ts', name: 'AnnalsViewer', formats: ['iife'], fileName: () => 'viewer.js' },
  },
});

/** What the package has beside the code: its types, and the licences of what is in it. */
function packageFiles(): Plugin {
  return {
    name: 'package-files',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: licences(modules) });
      const types = readFileSync(join(import.meta.dirname, 'src', 'history-element.ts'), 'utf8');
      this.emitFile({ type: 'asset', fileName: 'history-element.d.ts', source: types });
    },
  };
}
