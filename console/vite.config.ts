import { defineConfig } from 'vite';
import { clientAliases } from './client-aliases.ts';
import { precompress } from './precompress.ts';

// A service to develop with, such as a running "annals demo": it answers /console/api.
const service = process.env.ANNALS_URL ?? 'http://127.0.0.1:8080';

export default defineConfig(({ command }) => ({
  root: import.meta.dirname,
  // The service writes the address of the console into <base href>. Everything else is relative to it.
  base: command === 'build' ? './' : '/console/',
  resolve: { alias: clientAliases },
  plugins: [precompress()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2023',
    outDir: 'dist',
    emptyOutDir: true,
    // For the test of the pages' sizes.
    manifest: true,
    // The content security policy allows no data: addresses, and no script in the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // What most pages share is one file: many small ones compress badly, and each is a request.
      output: {
        codeSplitting: {
          groups: [{ name: 'shared', test: /src\/(?:components|api|router|query-text)\//, minShareCount: 4 }],
        },
      },
    },
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      // The service refuses what comes from another host or another origin.
      '/console/api': { target: service, changeOrigin: true, headers: { origin: service } },
    },
  },
}));
