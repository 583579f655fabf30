import type { Generated } from 'kysely';

interface TenantTable {
  tenant: string;
  created_at: Generated<Date>;
}

/** Every table of the database by its name. Each room describes its own beside its store and declares them in here. */
export interface Tables {
  tenant: TenantTable;
}
