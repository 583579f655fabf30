import { fileURLToPath } from 'node:url';

function client(file: string): string {
  return fileURLToPath(new URL(`../clients/typescript/src/${file}`, import.meta.url));
}

/** `@annals/client` is taken from its sources, so the console needs no build of it. The longer names come first. */
export const clientAliases: Record<string, string> = {
  '@annals/client/context': client('context/index.ts'),
  '@annals/client/pg': client('pg/index.ts'),
  '@annals/client/json': client('json/index.ts'),
  '@annals/client/query': client('query/index.ts'),
  '@annals/client': client('index.ts'),
};
