import { type DocumentTable, documentTable } from '../../recording/documents/document-table.ts';
import './tables.ts';
import { maxIndexedValues } from './value-index.ts';

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
