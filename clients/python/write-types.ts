// Writes annals/_schemas.py: the types that annals/schemas.py exports, and those that they are made of.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesIn, stateOf, textOf } from '../../build/checkout.js';

const root = join(import.meta.dirname, '..', '..');
const file = join(import.meta.dirname, 'annals', '_schemas.py');
const exported = join(import.meta.dirname, 'annals', 'schemas.py');
// The file is kept in git, so the state that it was made from is remembered elsewhere.
const remembered = join(root, 'node_modules', '.cache', 'annals', 'python-types');
const own = ['write-types.ts', 'python-types.ts', 'annals/schemas.py', 'annals/_schemas.py'];
const state = () =>
  stateOf(root, [...filesIn(root, ['src'], /\.ts$/), ...own.map((name) => join('clients', 'python', name))]);
if (textOf(remembered) !== state()) {
  const [{ describedSchemas }, { pythonTypes }] = await Promise.all([
    import('../typescript/described-schemas.ts'),
    import('./python-types.ts'),
  ]);
  const text = pythonTypes(await describedSchemas(), textOf(exported) ?? '');
  if (text !== textOf(file)) writeFileSync(file, text);
  mkdirSync(dirname(remembered), { recursive: true });
  writeFileSync(remembered, state());
}
