import type { TableMapping } from './mapping.ts';

/** Those of the columns that a mask of the table covers, in whole or in part. */
export function maskedColumns({ rules }: TableMapping, columns: readonly string[]): string[] {
  return columns.filter((column) => rules.mask.some(({ keys: [first] }) => first === null || first === column));
}
