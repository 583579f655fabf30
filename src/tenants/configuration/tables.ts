interface ConfigurationTable {
  tenant: string;
  key: string;
  /** JSON text; null where the value is secured. */
  value: string | null;
  /** null where the value is not secured. */
  sealed: Uint8Array | null;
  version: number;
  description: string | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    configuration: ConfigurationTable;
  }
}
