import { expect } from 'vitest';
import { entriesOf, memberOf } from '../../../src/core/json/members.ts';
import { parseJson } from '../../../src/core/json/parse.ts';
import { compactText } from '../../../src/core/json/text.ts';

/** The fields of the CSV line that an export must have for an item, which is JSON text. */
export function csvRowOf(item: string): string[] {
  const { document, related, paths, who } = csvPartsOf(item);
  return [...document, related, paths, ...who].map(withoutFormula);
}

/** The lines with a row for each path. Values are JSON texts, which no spreadsheet runs. */
export function fieldRowsOf(item: string): string[][] {
  const { document, related, paths, who } = csvPartsOf(item);
  const fields = entriesOf(parseJson(paths)).map(([path, sides], index) => {
    const [before, after] = ['before', 'after'].map((side) => memberOf(sides, side));
    return { path, before: before && compactText(before), after: after && compactText(after), number: index + 1 };
  });
  const rows = fields.length > 0 ? fields : [{ path: '', before: '', after: '', number: '' }];
  return rows.map(({ path, before = '', after = '', number }, index) => [
    ...[...document, index === 0 ? related : '', `${number}`, path].map(withoutFormula),
    ...[before, after].map(normalized),
    ...who.map(withoutFormula),
  ]);
}

/** JSON text with strings in one form. Numbers stay as they are. */
export function normalized(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/g, (token) => JSON.stringify(JSON.parse(token)));
}

function withoutFormula(field: string): string {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(field) ? `'${field}` : field;
}

function csvPartsOf(item: string) {
  const { at, type, entity, entityId, name = '', schemaVersion = '', actor, ...who } = JSON.parse(item);
  const { actorId = '', onBehalfOf = {}, correlationId = '' } = who;
  const columns = [actorId, onBehalfOf.name ?? '', onBehalfOf.id ?? '', correlationId];
  const related = item.slice(item.lastIndexOf('"related":') + '"related":'.length, -1);
  const [, paths = ''] = /"paths":(.*?),"(?:schemaVersion|actor)":/s.exec(item) ?? [];
  return { document: [at, type, entity, entityId, name, schemaVersion, actor], related, paths, who: columns };
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
