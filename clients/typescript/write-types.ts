// Writes src/openapi.ts, the types of what the service takes and answers, unless they are there as the sources are now;
// and src/query/written.ts, the copy of the service's own file, so that the package needs nothing of the service.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyQueryText, filesIn, stateOf, textOf } from '../../build/checkout.js';

const root = join(import.meta.dirname, '..', '..');
copyQueryText(root);
const file = join(import.meta.dirname, 'src', 'openapi.ts');
const own = ['write-types.ts', 'described-schemas.ts'].map((name) => join('clients', 'typescript', name));
const state = stateOf(root, [...filesIn(root, ['src'], /\.ts$/), ...own, 'package-lock.json']);
const head = `// Of the sources ${state}.\n`;
if (!textOf(file)?.startsWith(head)) {
  const [{ default: openapiTypes, astToString }, { describedSchemas }] = await Promise.all([
    import('openapi-typescript'),
    import('./described-schemas.ts'),
  ]);
  writeFileSync(file, head + astToString(await openapiTypes(JSON.stringify(await describedSchemas()))));
}
