import type { Dialect } from './dialect.ts';

/** Every field there may be in a JSON document, its path with dots between the keys (contract 9). */
export const documentDialect: Dialect = {
  field: (name) => (name === 'compoundLogicalQuery' ? { kind: 'group' } : { kind: 'value' }),
  fields: 'a field of the document',
  needs: [],
};
