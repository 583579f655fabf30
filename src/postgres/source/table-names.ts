import pg from 'pg';

/** A table of the source by its two names. */
export interface TableName {
  readonly schema: string;
  readonly name: string;
}

export function quotedTable({ schema, name }: TableName): string {
  return `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
}

/** The name as the mapping has it. */
export function plainTable({ schema, name }: TableName): string {
  return `${schema}.${name}`;
}
