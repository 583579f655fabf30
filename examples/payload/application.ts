import { postgresAdapter } from '@payloadcms/db-postgres';
import { buildConfig, type CollectionConfig, getPayload, type Payload } from 'payload';

const authors: CollectionConfig = {
  slug: 'authors',
  fields: [
    { name: 'name', type: 'text', required: true },
    { name: 'born', type: 'date' },
    { name: 'links', type: 'json' },
  ],
};

/** Drafts and versions, and each kind of field that has a table of its own. */
const articles: CollectionConfig = {
  slug: 'articles',
  versions: { drafts: true },
  fields: [
    { name: 'title', type: 'text', required: true },
    { name: 'price', type: 'number' },
    { name: 'featured', type: 'checkbox' },
    { name: 'kind', type: 'select', options: ['news', 'essay'] },
    {
      name: 'seo',
      type: 'group',
      fields: [
        { name: 'description', type: 'textarea' },
        { name: 'keywords', type: 'text', hasMany: true },
      ],
    },
    { name: 'editor', type: 'relationship', relationTo: 'authors' },
    { name: 'authors', type: 'relationship', relationTo: 'authors', hasMany: true },
    { name: 'channels', type: 'select', hasMany: true, options: ['web', 'print', 'mail'] },
    {
      name: 'sources',
      type: 'array',
      fields: [
        { name: 'label', type: 'text' },
        { name: 'url', type: 'text' },
      ],
    },
    {
      name: 'layout',
      type: 'blocks',
      blocks: [
        { slug: 'quote', fields: [{ name: 'text', type: 'text' }] },
        {
          slug: 'figure',
          fields: [
            { name: 'caption', type: 'text' },
            { name: 'width', type: 'number' },
          ],
        },
      ],
    },
  ],
};

const orders: CollectionConfig = {
  slug: 'orders',
  fields: [
    { name: 'number', type: 'text', required: true, unique: true },
    { name: 'total', type: 'number' },
    { name: 'state', type: 'select', options: ['open', 'paid', 'sent'], defaultValue: 'open' },
    {
      name: 'items',
      type: 'array',
      fields: [
        { name: 'article', type: 'relationship', relationTo: 'articles' },
        { name: 'count', type: 'number' },
      ],
    },
  ],
};

/** Payload on the database, which makes its tables where they are missing. */
export async function openApplication(connectionString: string): Promise<Payload> {
  const config = buildConfig({
    secret: 'not a secret: nobody logs in here',
    telemetry: false,
    typescript: { autoGenerate: false },
    collections: [authors, articles, orders],
    db: postgresAdapter({ pool: { connectionString } }),
  });
  return await getPayload({ config, disableOnInit: true });
}
