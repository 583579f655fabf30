import { readFileSync } from 'node:fs';
import module from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { warnOnce } from '../context/warning.ts';
import { attribute } from '../pg/index.ts';

/** Called at the end of the entry files of pg and pg-pool, with their exports. */
const loadedKey = Symbol.for('annals.loaded');
const epilogue = `\n;globalThis[Symbol.for('annals.loaded')]?.(module.exports);`;

/**
 * Attributes every copy of pg that this thread loads from now on. Every one is loaded as CommonJS in the end: pg's ESM
 * entry imports it.
 */
export function attributeLoadedPg(): void {
  Object.assign(globalThis, { [loadedKey]: attributeExports });
  if (typeof module.registerHooks === 'function') hookLoads(module.registerHooks);
  else patchLoader();
}

function hookLoads(registerHooks: typeof module.registerHooks): void {
  registerHooks({
    load(url, context, nextLoad) {
      const result = nextLoad(url, context);
      const file = url.startsWith('file:') ? fileOf(url) : undefined;
      if (file === undefined || !isEntry(file)) return result;
      const source = result.source ?? readFileSync(file);
      const text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString('utf8');
      return { ...result, source: text + epilogue };
    },
  });
}

interface CompiledModule {
  _compile(source: string, file: string, ...rest: unknown[]): unknown;
}

/** Before Node 22.15: what `require` and the ESM loader's CommonJS share. */
function patchLoader(): void {
  const loader = module.prototype as unknown as CompiledModule;
  const compile = loader._compile;
  loader._compile = function (this: CompiledModule, source, file, ...rest) {
    return Reflect.apply(compile, this, [isEntry(file) ? source + epilogue : source, file, ...rest]);
  };
}

/** Whether a file is the entry of pg or of pg-pool. A folder of any name may hold pg, as with an alias. */
function isEntry(file: string): boolean {
  if (basename(file) !== 'index.js') return false;
  const folder = dirname(file);
  return basename(folder) === 'lib' ? nameOf(dirname(folder)) === 'pg' : basename(folder) === 'pg-pool';
}

function nameOf(folder: string): unknown {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).name;
  } catch {
    return undefined;
  }
}

function fileOf(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/** pg exports its classes, pg-pool one class. */
function attributeExports(exported: unknown): void {
  const targets =
    typeof exported === 'function'
      ? [exported]
      : typeof exported === 'object' && exported !== null
        ? [Reflect.get(exported, 'Client'), Reflect.get(exported, 'Pool')]
        : [];
  try {
    for (const target of targets) attribute(target);
  } catch {
    // Such as the native bindings, where NODE_PG_FORCE_NATIVE is set.
    warnOnce('UNKNOWN_PG', 'a copy of pg is not attributed: its classes are not those of the JavaScript driver');
  }
}
