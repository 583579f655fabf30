import { documentTable } from '../../recording/documents/document-table.ts';
import './tables.ts';

/** Custom types, stored and recorded as other documents are, with their schema in a column of its own. */
export const typeTable = documentTable<{ readonly jsonSchema: string | null }>('custom_entity', {
  jsonSchema: 'json_schema',
});
