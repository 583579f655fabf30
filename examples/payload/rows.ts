import type { Payload } from 'payload';

/** Columns with their values. */
export type Row = Record<string, unknown>;

const everything = { depth: 0, pagination: false } as const;

/** For each entity of the mapping that is a main table: its rows, as they follow from what the API answers. */
export const mainTables: Readonly<Record<string, (payload: Payload) => Promise<Row[]>>> = {
  author: async (payload) => (await payload.find({ collection: 'authors', ...everything })).docs.map(rowOf),
  article: async (payload) => (await payload.find({ collection: 'articles', ...everything })).docs.map(rowOf),
  'article-version': async (payload) =>
    (await payload.findVersions({ collection: 'articles', ...everything })).docs.map(rowOf),
  order: async (payload) => (await payload.find({ collection: 'orders', ...everything })).docs.map(rowOf),
};

/** The same for tables of parts. Their columns with underscores tell the place of a row. */
export const childTables: Readonly<Record<string, (payload: Payload) => Promise<Row[]>>> = {
  'article source': async (payload) =>
    await parts(payload, 'articles', (article, _parent_id) =>
      listOf(article.sources).map((source, index) => ({ ...source, _order: index + 1, _parent_id })),
    ),
  'article quote': async (payload) => await blocks(payload, 'quote'),
  'article figure': async (payload) => await blocks(payload, 'figure'),
  'article relation': async (payload) =>
    await parts(payload, 'articles', (article, parent_id) =>
      listOf(article.authors).map((authors_id, index) => ({
        order: index + 1,
        parent_id,
        path: 'authors',
        authors_id,
      })),
    ),
  'article channel': async (payload) =>
    await parts(payload, 'articles', (article, parent_id) =>
      listOf(article.channels).map((value, index) => ({ order: index + 1, parent_id, value })),
    ),
  'article keyword': async (payload) =>
    await parts(payload, 'articles', (article, parent_id) =>
      listOf((article.seo as Row).keywords).map((text, index) => ({
        order: index + 1,
        parent_id,
        path: 'seo.keywords',
        text,
      })),
    ),
  'order item': async (payload) =>
    await parts(payload, 'orders', (order, _parent_id) =>
      listOf(order.items).map(({ id, article, count }, index) => ({
        _order: index + 1,
        _parent_id,
        id,
        article_id: article,
        count,
      })),
    ),
};

async function parts(payload: Payload, collection: string, of: (document: Row, id: unknown) => Row[]): Promise<Row[]> {
  const { docs } = await payload.find({ collection, ...everything });
  return docs.flatMap((document) => of(document, document.id));
}

async function blocks(payload: Payload, type: string): Promise<Row[]> {
  return await parts(payload, 'articles', ({ layout }, _parent_id) =>
    listOf(layout).flatMap(({ blockType, blockName, ...block }, index) =>
      blockType === type ? [{ ...block, block_name: blockName, _order: index + 1, _parent_id, _path: 'layout' }] : [],
    ),
  );
}

// biome-ignore lint/suspicious/noExplicitAny: documents of collections without generated types
function listOf(value: unknown): any[] {
  return Array.isArray(value) ? value : [];
}

/** Relations to one document are columns with `_id`. */
const relations = new Set(['editor', 'parent']);
/** JSON is one column. */
const json = new Set(['links']);

/** Groups are columns with their name before; lists are tables of their own. */
function rowOf(document: object, prefix: unknown = ''): Row {
  const start = typeof prefix === 'string' ? prefix : '';
  return Object.fromEntries(
    Object.entries(document).flatMap(([field, value]) => {
      const column = start + field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      if (json.has(field)) return [[column, value]];
      if (relations.has(field)) return [[`${column}_id`, value]];
      if (Array.isArray(value)) return [];
      if (typeof value === 'object' && value !== null) return Object.entries(rowOf(value, `${column}_`));
      return [[column, value]];
    }),
  );
}
