import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MappingFile } from '../../../src/recording/mapping/mapping-schema.ts';

const root = join(import.meta.dirname, '..', '..', '..');

test('schemas/mapping.schema.json is the schema that a mapping is checked by, and is in the package', () => {
  const written: unknown = JSON.parse(readFileSync(join(root, 'schemas', 'mapping.schema.json'), 'utf8'));
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', ...MappingFile };

  expect(written).toEqual(JSON.parse(JSON.stringify(schema)));
  expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).files).toContain('schemas');
});
