import { join } from 'node:path';

/** The folder with the page, which a run of tests builds where its sources have changed. */
export const builtConsole = join(import.meta.dirname, '..', '..', 'dist');
