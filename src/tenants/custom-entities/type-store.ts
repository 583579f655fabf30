import { documentTable } from '../../recording/documents/document-table.ts';
import './tables.ts';

export const typeTable = documentTable<{ readonly jsonSchema: string | null }>('custom_entity', {
  jsonSchema: 'json_schema',
});
