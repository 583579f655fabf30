import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const testFiles = ['test/**/*.test.ts', 'console/test/**/*.test.ts', 'clients/viewer/test/**/*.test.ts'];

/** What a test needs that starts anything: servers of the tests, other programs, or a browser. */
const impure = /support\/(?:server|vendor)\/|node:child_process|createServer|playwright/;

/** The test files that start no server, process or browser, nor does what they import from the tests. */
export function pureTests(root: string): string[] {
  const sources = new TestSources(root);
  return sources.files.filter((file) => !sources.allOf(file).some((one) => impure.test(sources.textOf(one))));
}

const programs = /node:child_process|playwright/;
const databases = /test\/support\/server\/(?:database|source-server)\.ts$/;
/** They start programs too: PostgreSQL, or what stands before it. */
const ofDatabases = /test\/support\/server\/(?:data-folder|oldest-server|pgbouncer|postgres-cluster)\.ts$/;
/** Rooms with statements of their own and no routine. */
const withoutRoutines = ['sources', 'delivery', 'custom-entities', 'budgets', 'calls'];
/**
 * Of these rooms the files about what comes before or after a statement: tokens, bodies and their limits, targets and
 * providers. Each of their statements runs in another file of the list as well.
 */
const aboutNoStatement = [
  'test/access/oauth/access-token.test.ts',
  'test/access/oauth/guess-limiter.test.ts',
  'test/access/oauth/revocation.test.ts',
  'test/access/oauth/signing-keys.test.ts',
  'test/access/oauth/token-endpoint.test.ts',
  'test/delivery/batches/http-batches.test.ts',
  'test/delivery/targets/refused-addresses.test.ts',
  'test/desk/completions/completions.test.ts',
  'test/desk/completions/stream.test.ts',
  'test/sources/recorder/recorder.test.ts',
  'test/sources/recorder/shares.test.ts',
  'test/tenants/custom-entities/document-limits.test.ts',
  'test/tenants/custom-entities/json-schema.test.ts',
  'test/tenants/usage/own-keys.test.ts',
];

/**
 * Its statements are those of restricted-reads and of the laws of pages; with three processes for each they take
 * minutes.
 */
const repeatsStatements = ['test/history/restriction/restriction-law.test.ts'];
const leftOut = [...aboutNoStatement, ...repeatsStatements];

/**
 * The test files of what an older PostgreSQL could refuse, plan or answer in another way: those that use a database and
 * start no other program, in rooms that have routines in `sql/` or much SQL in their stores. Those of HTTP are about
 * what comes before a statement, and so are some of the others.
 */
export function databaseTests(root: string): string[] {
  const sources = new TestSources(root);
  const unknown = leftOut.filter((file) => !sources.files.includes(file));
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}: the list names what it leaves out.`);
  const rooms = new Set([...readdirSync(join(root, 'sql')), ...withoutRoutines]).difference(new Set(['http']));
  return sources.files.filter((file) => {
    if (leftOut.includes(file) || !file.split('/').some((part) => rooms.has(part))) return false;
    const all = sources.allOf(file);
    if (!all.some((one) => databases.test(one))) return false;
    return !all.some((one) => !ofDatabases.test(one) && programs.test(sources.textOf(one)));
  });
}

/** The test files, and what they import from the tests. */
class TestSources {
  readonly files: readonly string[];
  readonly #root: string;
  readonly #texts = new Map<string, string>();
  readonly #imported = new Map<string, readonly string[]>();

  constructor(root: string) {
    this.#root = root;
    this.files = globSync(testFiles, { cwd: root, exclude: ['**/node_modules/**'] });
  }

  textOf(file: string): string {
    return this.#texts.getOrInsertComputed(file, () => readFileSync(join(this.#root, file), 'utf8'));
  }

  /** The file itself and all that it imports, directly or not. */
  allOf(file: string): string[] {
    const all = new Set([file]);
    for (const reached of all) for (const imported of this.#importedBy(reached)) all.add(imported);
    return [...all];
  }

  #importedBy(file: string): readonly string[] {
    return this.#imported.getOrInsertComputed(file, () =>
      [...this.textOf(file).matchAll(/from '(\.[^']+\.ts)'/g)]
        .map(([, path = '']) => join(dirname(file), path))
        // Some tests write such a line into a file of their own.
        .filter((path) => /(?:^|\/)test\//.test(path) && existsSync(join(this.#root, path))),
    );
  }
}
