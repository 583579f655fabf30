import type { CatalogueTable } from '../../postgres/source/source-catalogue.ts';
import { plainTable, quotedTable } from '../../postgres/source/table-names.ts';

/** Why a table cannot be published, and the statement that mends it where there is one. */
export interface TableFault {
  readonly message: string;
  readonly statement?: string;
}

/**
 * Why publishing a table would break the application or lose changes; empty where it would not. `needed` are the columns that each
 * change must have of the row before it: those of the tenant, the id, the name and the related documents.
 */
export function tableFaults(table: CatalogueTable, needed: readonly string[]): TableFault[] {
  const name = plainTable(table);
  if (table.kind !== 'r' && table.kind !== 'p') return [{ message: `${name} is no table` }];
  if (table.persistence !== 'p') return [{ message: `${name} writes no log (unlogged or temporary)` }];
  if (table.isPartition) return [{ message: `${name} is a partition: the mapping must name the root` }];
  const generated = new Set(table.columns.filter((column) => column.isGenerated).map((column) => column.name));
  const computed = needed.filter((column) => generated.has(column));
  if (computed.length > 0)
    return [{ message: `${name}: the generated column ${computed.join(', ')} is not in the log` }];
  // A partition that is added later has the root's primary key, but not its other replica identities. Without any, its updates fail.
  if (table.kind === 'p' && table.primaryKey.length === 0) {
    return [{ message: `${name} is partitioned and has no primary key, so updates in a new partition would fail` }];
  }
  // The root decides how the log has the row before a change, and the partition decides which columns that row has. So
  // the two must agree.
  return [table, ...table.partitions].flatMap((one): TableFault[] => {
    const statement = `alter table ${quotedTable(one)} replica identity full;`;
    if (one.identity === undefined) {
      const message = `${plainTable(one)} has no replica identity: its updates and deletes would fail once it is published`;
      return [{ message, statement }];
    }
    const outside = needed.filter((column) => !one.identity?.has(column));
    if (outside.length > 0) {
      return [{ message: `${plainTable(one)}: ${outside.join(', ')} is not in its replica identity`, statement }];
    }
    if (table.replicaIdentity === 'f' && one.replicaIdentity !== 'f') {
      return [{ message: `${plainTable(one)} has another replica identity than its root ${name}`, statement }];
    }
    return [];
  });
}
