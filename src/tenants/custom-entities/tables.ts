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
