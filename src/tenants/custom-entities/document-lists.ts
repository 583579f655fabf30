import { invalidField } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { elementsOf, kindOf, membersOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { mapTexts } from '../../pagination/page-texts.ts';
import type { DocumentLists, Page } from '../../pagination/paginator.ts';
import { parsePath, splitUnescaped } from '../../pagination/sort.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';

/** The selected fields of a document, by key: everything, or the selected fields within. */
type FieldSelection = Map<string, FieldSelection | 'everything'>;

const maxFields = 100;
/** As many as an instance has levels. Maps nest per key, and cloning them for a worker thread uses stack for each. */
const maxKeys = 100;

/**
 * Parses `fields=name,price.amount`: paths as in `sort`. The id is always included. Throws validation_violation for an
 * empty path, more than 100 paths, or a path of more than 100 keys.
 */
function parseFields(text: string | undefined): FieldSelection | undefined {
  if (text === undefined) return undefined;
  const texts = splitUnescaped(text, ',').map((path) => path.trim());
  if (texts.includes('')) throw invalidField('fields', 'fields must not have an empty field');
  if (texts.length > maxFields) throw invalidField('fields', `fields must have at most ${maxFields} fields`);
  const paths = texts.map(parsePath);
  if (paths.some(({ length }) => length > maxKeys)) {
    throw invalidField('fields', `a field must have at most ${maxKeys} keys`);
  }
  const selection: FieldSelection = new Map([['id', 'everything']]);
  for (const path of paths) add(selection, path);
  return selection;
}

/** Documents with only the selected fields, in document order. Every value is verbatim. */
const selectFields = threaded(
  import.meta.url,
  'selectFields',
  (documents: readonly string[], selection: FieldSelection): readonly string[] =>
    documents.map((document) => selectedText(parseJson(document), selection)),
);

function add(selection: FieldSelection, [key = '', ...rest]: string[]): void {
  const known = selection.get(key);
  if (known === 'everything') return;
  if (rest.length === 0) {
    selection.set(key, 'everything');
    return;
  }
  const inner: FieldSelection = known ?? new Map();
  selection.set(key, inner);
  add(inner, rest);
}

/** In an array, the selection applies to each object. */
function selectedText(value: JsonNode, selection: FieldSelection): string {
  if (kindOf(value) === 'array') {
    const inner = elementsOf(value).filter((element) => kindOf(element) === 'object' || kindOf(element) === 'array');
    return `[${inner.map((element) => selectedText(element, selection)).join(',')}]`;
  }
  const members: [string, string][] = [];
  for (const [key, member] of membersOf(value)) {
    const selected = selection.get(key);
    if (selected === 'everything') members.push([key, compactText(member)]);
    else if (selected !== undefined && ['object', 'array'].includes(kindOf(member))) {
      members.push([key, selectedText(member, selected)]);
    }
  }
  return objectText(members);
}

/** Lists of documents, also for other modules. */
export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    page: (rows, { q = '', fields }, page) =>
      withFields(fields, () => findDocuments(context, rows, parseDocumentQuery(q), page)),
  };
}

/** A page whose documents have only the requested fields. */
export async function withFields(fields: string | undefined, find: () => Promise<Page>): Promise<Page> {
  const selection = parseFields(fields);
  const page = await find();
  if (selection === undefined) return page;
  return { ...page, texts: await mapTexts(page.texts, (texts) => selectFields(texts, selection)) };
}
