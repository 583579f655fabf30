import type { Generated } from 'kysely';

interface TenantTable {
  tenant: string;
  created_at: Generated<Date>;
}

/** Every table of the database. Each module declares its own beside its store. */
export interface Tables {
  tenant: TenantTable;
}
