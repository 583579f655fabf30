import { type DocumentTable, documentTable } from '../../recording/documents/document-table.ts';
import { maxIndexedValues } from './value-index.ts';

interface CustomEntityTable {
  tenant: string;
  id: string;
  version: number;
  /** The type as JSON text, as sent. */
  document: string;
  /** The type as jsonb, for filters and sorting. */
  fields: string;
  json_schema: string | null;
}

interface CustomInstanceTable {
  tenant: string;
  type: string;
  id: string;
  version: number;
  document: string;
  fields: string;
  /** 1: not in the value index. */
  wide: number;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    custom_entity: CustomEntityTable;
    custom_instance: CustomInstanceTable;
  }
}

/** Custom types, stored and recorded as other documents are, with their schema in a column of its own. */
export const typeTable = documentTable<{ readonly jsonSchema: string | null }>('custom_entity', {
  jsonSchema: 'json_schema',
});

export interface InstanceColumns {
  readonly wide: number;
}

/** The instances of a type. Inserting one fails with a foreign key violation if the type does not exist. */
export function instanceTable(type: string): DocumentTable<InstanceColumns> {
  return documentTable<InstanceColumns>('custom_instance', { wide: 'wide' }, { type });
}

/** `values`: number of JSON values of the document. */
export function widthOf(values: number): number {
  return values > maxIndexedValues ? 1 : 0;
}
