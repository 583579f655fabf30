import pg from 'pg';
import { type CatalogueTable, plainTable, quotedTable } from '../../postgres/source/source-catalogue.ts';

/** Why a table cannot be published, with the statement that fixes it, if any. */
export interface TableFault {
  readonly message: string;
  readonly statement?: string;
  /** A reason that many tables may share, and this table. */
  readonly group?: { readonly reason: string; readonly item: string };
}

/** A table or one of its partitions. */
type OneTable = Omit<CatalogueTable, 'partitions'>;

/**
 * Why publishing a table would break the application or lose changes. `needed`: the columns of the previous row that
 * each change must have (tenant, id, name, related). `publication`: that of capture, which publishes stored generated
 * columns.
 */
export function tableFaults(table: CatalogueTable, needed: readonly string[], publication: string): TableFault[] {
  const name = plainTable(table);
  if (table.kind !== 'r' && table.kind !== 'p') return [{ message: `${name} is no table` }];
  if (table.persistence !== 'p') return [{ message: `${name} writes no log (unlogged or temporary)` }];
  if (table.isPartition) return [{ message: `${name} is a partition: the mapping must name the root` }];
  const generated = new Set(table.columns.filter((column) => column.isGenerated).map((column) => column.name));
  const computed = needed.filter((column) => generated.has(column));
  if (computed.length > 0) return [{ message: `${name}: the generated column ${computed.join(', ')} is not recorded` }];
  // A partition added later has the root's primary key as its identity, or none; without one its updates fail.
  if (table.kind === 'p' && !table.keys.some(({ index }) => index === undefined)) {
    const deferrable = table.primaryKey.length === 0 ? '' : ' but a deferrable one';
    return [
      {
        message: `${name} is partitioned and has no primary key${deferrable}, so updates in a new partition would fail`,
      },
    ];
  }
  // The root's identity decides the form of the previous row in the log, the partition's its columns. So they must
  // agree.
  return [table, ...table.partitions].flatMap((member): TableFault[] => {
    const fault =
      unwritableReason(member) ??
      outsideReason(member, needed) ??
      (table.replicaIdentity === 'f' && member.replicaIdentity !== 'f' && virtualColumns(member).length === 0
        ? { message: `${plainTable(member)} has another replica identity than its root ${name}` }
        : undefined);
    return fault === undefined ? [] : [withIdentity(fault, member, needed, publication)];
  });
}

/** Why updates and deletes of a published table fail; empty if they do not. */
export function unwritableFaults(table: CatalogueTable, needed: readonly string[], publication: string): TableFault[] {
  return [table, ...table.partitions].flatMap((member): TableFault[] => {
    if (member.kind !== 'r') return [];
    const fault = unwritableReason(member);
    if (fault !== undefined) return [withIdentity(fault, member, needed, publication)];
    const unpublished = unpublishedReason(member, publication);
    return unpublished === undefined ? [] : [{ message: unpublished, statement: publishGenerated(publication) }];
  });
}

/** Why `replica identity full` would make updates of a published table fail; undefined if it would not. */
export function reasonAgainstFull(table: OneTable, publication: string): string | undefined {
  const virtual = virtualColumns(table);
  if (virtual.length > 0) return `its virtual generated column ${virtual.join(', ')} can never be published`;
  const foreign = table.publications.filter(({ name }) => name !== publication);
  const list = foreign.find(({ hasColumnList }) => hasColumnList);
  if (list !== undefined) return `the publication ${list.name} has a column list for it`;
  const lacking = foreign.find(({ lacksGenerated }) => lacksGenerated);
  if (lacking === undefined || !hasStoredColumns(table)) return undefined;
  return `the publication ${lacking.name} does not publish its generated columns`;
}

/** The statement for `replica identity full`, preceded by one for the publication if needed. */
export function fullIdentityStatement(table: OneTable, publication: string): string {
  const lacks = table.publications.some(({ name, lacksGenerated }) => name === publication && lacksGenerated);
  const before = lacks && hasStoredColumns(table) ? `${publishGenerated(publication)} ` : '';
  return `${before}alter table ${quotedTable(table)} replica identity full;`;
}

/** From PostgreSQL 18 on. Without it, updates fail if a stored generated column is in the replica identity. */
export function publishGenerated(publication: string): string {
  return `alter publication ${pg.escapeIdentifier(publication)} set (publish_generated_columns = stored);`;
}

export function hasGeneratedIdentity(table: CatalogueTable): boolean {
  return [table, ...table.partitions].some(hasGenerated);
}

function hasGenerated({ columns, identity }: OneTable): boolean {
  return columns.some(({ name, isGenerated }) => isGenerated && identity?.has(name));
}

function unwritableReason(table: OneTable): TableFault | undefined {
  const name = plainTable(table);
  if (table.identity === undefined) {
    const effect = 'updates and deletes would fail once';
    return {
      message: `${name} has no replica identity: its ${effect} it is published`,
      group: { reason: `these tables have no replica identity: their ${effect} they are published`, item: name },
    };
  }
  const virtual = table.replicaIdentity === 'f' ? virtualColumns(table) : [];
  if (virtual.length === 0) return undefined;
  const message = `${name}: its virtual generated column ${virtual.join(', ')} cannot be published, so its updates and deletes would fail with replica identity full`;
  return { message };
}

function unpublishedReason(table: OneTable, publication: string): string | undefined {
  const lacks = table.publications.some(({ name, lacksGenerated }) => name === publication && lacksGenerated);
  if (!lacks || !hasGenerated(table)) return undefined;
  return `${plainTable(table)}: its updates and deletes fail, because the publication ${publication} does not publish its stored generated columns`;
}

function outsideReason(table: OneTable, needed: readonly string[]): TableFault | undefined {
  const outside = needed.filter((column) => !table.identity?.has(column)).join(', ');
  if (outside === '') return undefined;
  const name = plainTable(table);
  return {
    message: `${name}: ${outside} is not in its replica identity`,
    group: {
      reason: 'the replica identity of these tables lacks columns of the mapping',
      item: `${name} (${outside})`,
    },
  };
}

/** Adds the statement for an identity with the needed columns that the table can have. */
function withIdentity(fault: TableFault, table: OneTable, needed: readonly string[], publication: string): TableFault {
  const against = reasonAgainstFull(table, publication);
  if (against === undefined) return { ...fault, statement: fullIdentityStatement(table, publication) };
  const key = table.keys.find(({ columns }) => needed.every((column) => columns.includes(column)));
  if (key !== undefined) {
    const identity = key.index === undefined ? 'default' : `using index ${pg.escapeIdentifier(key.index)}`;
    return { ...fault, statement: `alter table ${quotedTable(table)} replica identity ${identity};` };
  }
  const remedy = `create a unique index of not null columns with ${needed.join(', ')}, or leave the other columns out of name, related and tenant`;
  return { message: `${fault.message}. It cannot have replica identity full, because ${against}: ${remedy}` };
}

function virtualColumns({ columns }: OneTable): string[] {
  return columns.flatMap(({ name, isVirtual }) => (isVirtual ? [name] : []));
}

function hasStoredColumns({ columns }: OneTable): boolean {
  return columns.some(({ isGenerated, isVirtual }) => isGenerated && !isVirtual);
}
