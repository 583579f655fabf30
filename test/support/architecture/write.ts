import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawArchitecture } from './draw.ts';
import { importsOf, sourceFiles } from './imports.ts';

const root = join(import.meta.dirname, '../../..');
const files = sourceFiles(root);
writeFileSync(join(root, 'docs/images/architecture.svg'), drawArchitecture(files, importsOf(root, files)));
