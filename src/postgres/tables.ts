import type { Generated } from 'kysely';

interface TenantTable {
  tenant: string;
  created_at: Generated<Date>;
}

/**
 * Every table of the database by its name. Each module describes its tables beside its store and declares them here.
 */
export interface Tables {
  tenant: TenantTable;
}
