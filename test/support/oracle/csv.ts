import { expect } from 'vitest';

/** The fields of the CSV line that an export must have for an item, which is JSON text. */
export function csvRowOf(item: string): string[] {
  const { at, type, entity, entityId, name = '', schemaVersion = '', actor, ...who } = JSON.parse(item);
  const { actorId = '', onBehalfOf = {}, correlationId = '' } = who;
  const columns = [actorId, onBehalfOf.name ?? '', onBehalfOf.id ?? '', correlationId];
  const related = item.slice(item.lastIndexOf('"related":') + '"related":'.length, -1);
  const [, paths = ''] = /"paths":(.*?),"(?:schemaVersion|actor)":/s.exec(item) ?? [];
  return [at, type, entity, entityId, name, schemaVersion, actor, related, paths, ...columns].map((field) =>
    /^[=+\-@\t\r\n＝＋－＠]/.test(field) ? `'${field}` : field,
  );
}

/** The rows of a CSV text, read as RFC 4180 says. */
export function rowsOfCsv(csv: string): string[][] {
  expect(csv.endsWith('\r\n')).toBe(true);
  const rows: string[][] = [[]];
  const token = /"((?:[^"]|"")*)"|([^",\r\n]*)/y;
  for (let at = 0; at < csv.length; ) {
    token.lastIndex = at;
    const [all = '', quoted, bare] = token.exec(csv) ?? [];
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare ?? '');
    at += all.length;
    if (csv[at] === ',') at += 1;
    else {
      expect(csv.slice(at, at + 2)).toBe('\r\n');
      at += 2;
      if (at < csv.length) rows.push([]);
    }
  }
  return rows;
}
