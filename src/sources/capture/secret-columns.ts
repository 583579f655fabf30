import type { TableMapping } from '../../recording/mapping/mapping.ts';

const secretWords =
  /(?:^|_)(?:secret|token|passw(?:or)?d|passphrase|credentials?|api_?key|access_?key|private_?key|session(?:_?(?:id|key))?|sid|jwt|otp|pin|iban|ssn|card_?(?:no|number))s?(?:_(?:hash|value))?$/;

/** Warnings of columns whose names sound like secrets, and which every entry shows: an id, a name or a related id cannot be masked. */
export function secretWarnings(table: TableMapping, primaryKey: readonly string[]): string[] {
  const shown: [use: string, columns: readonly (string | undefined)[]][] = [
    ['id', table.id ?? primaryKey],
    ['name', [table.name]],
    ...table.related.map(({ entity, id }): [string, readonly string[]] => [`related ${entity}`, id]),
  ];
  return shown.flatMap(([use, columns]) =>
    columns.flatMap((column) => {
      if (column === undefined || !secretWords.test(snakeCase(column))) return [];
      return [
        `${table.table}: its ${use} is the column ${column}, which seems to be a secret. Entries show its value, and a mask cannot cover it. ` +
          'Use another column, or leave the table out',
      ];
    }),
  );
}

function snakeCase(column: string): string {
  return column.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}
