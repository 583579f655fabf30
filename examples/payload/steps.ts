import type { Payload } from 'payload';

/** What an editor does, by Payload's local API. Each step is one or more calls. */
export const steps: Readonly<Record<string, (payload: Payload) => Promise<unknown>>> = {
  'authors are made': async (payload) => {
    for (const data of [
      { name: 'Ann Lee', born: '1970-01-02T00:00:00.000Z', links: { web: 'https://ann.example', likes: [1, 2.5] } },
      { name: 'Bob Ray' },
      { name: 'Zoë Østergård', links: { web: null } },
    ]) {
      await payload.create({ collection: 'authors', data });
    }
  },
  'an article is drafted, with rows in every child table': (payload) =>
    payload.create({
      collection: 'articles',
      draft: true,
      data: {
        title: 'How to brew',
        price: 1.1,
        seo: { description: 'Coffee', keywords: ['coffee', 'water'] },
        editor: 1,
        authors: [1, 2],
        channels: ['web', 'mail'],
        sources: [
          { label: 'One', url: 'https://one.example' },
          { label: 'Two', url: 'https://two.example' },
        ],
        layout: [
          { blockType: 'quote', text: 'Slowly' },
          { blockType: 'figure', caption: 'A kettle', width: 640 },
        ],
      },
    }),
  'the draft is edited: the article itself stays as it is': (payload) =>
    payload.update({ collection: 'articles', id: 1, draft: true, data: { title: 'How to brew coffee' } }),
  'the article is published': (payload) =>
    payload.update({ collection: 'articles', id: 1, data: { _status: 'published', price: 12.5, featured: true } }),
  'a draft of the published article is made': (payload) =>
    payload.update({
      collection: 'articles',
      id: 1,
      draft: true,
      data: { title: 'How to brew tea', _status: 'draft' },
    }),
  'the article is published again, with that title': (payload) =>
    payload.update({ collection: 'articles', id: 1, data: { title: 'How to brew tea', _status: 'published' } }),
  'a value alone is changed': (payload) =>
    payload.update({ collection: 'articles', id: 1, data: { kind: 'essay', seo: { description: 'Tea' } } }),
  'relations are changed: other authors, in another order': (payload) =>
    payload.update({ collection: 'articles', id: 1, data: { authors: [3, 1], editor: 2 } }),
  'an element of an array is changed, one is added and one removed': async (payload) => {
    const { sources } = await payload.findByID({ collection: 'articles', id: 1, depth: 0 });
    const [first] = sources as { id: string; label: string }[];
    await payload.update({
      collection: 'articles',
      id: 1,
      data: { sources: [{ ...first, label: 'First' }, { label: 'Three' }] },
    });
  },
  'blocks change their places': async (payload) => {
    const { layout } = await payload.findByID({ collection: 'articles', id: 1, depth: 0 });
    await payload.update({ collection: 'articles', id: 1, data: { layout: (layout as object[]).toReversed() } });
  },
  'an article is copied': (payload) => payload.duplicate({ collection: 'articles', id: 1 }),
  'many articles are changed by one call': (payload) =>
    payload.update({ collection: 'articles', where: { title: { exists: true } }, data: { price: 9007199254740991 } }),
  'an old version is restored': async (payload) => {
    const { docs } = await payload.findVersions({
      collection: 'articles',
      where: { parent: { equals: 1 } },
      sort: 'createdAt',
      limit: 1,
    });
    await payload.restoreVersion({ collection: 'articles', id: String(docs[0]?.id) });
  },
  'the article is taken back': (payload) =>
    payload.update({ collection: 'articles', id: 1, data: { _status: 'draft' } }),
  'orders are made': async (payload) => {
    for (const number of ['A-1', 'A-2', 'A-3']) {
      await payload.create({
        collection: 'orders',
        data: {
          number,
          total: 19.9,
          items: [
            { article: 1, count: 2 },
            { article: 2, count: 1 },
          ],
        },
      });
    }
  },
  'an order is paid': (payload) => payload.update({ collection: 'orders', id: 1, data: { state: 'paid' } }),
  'the items of an order are changed': async (payload) => {
    const { items } = await payload.findByID({ collection: 'orders', id: 1, depth: 0 });
    await payload.update({ collection: 'orders', id: 1, data: { total: 9.95, items: (items as object[]).slice(1) } });
  },
  'a call that fails records nothing': async (payload) => {
    await payload.create({ collection: 'orders', data: { number: 'A-1' } }).then(
      () => Promise.reject(new Error('an order with a number that is taken must be refused')),
      () => undefined,
    );
  },
  'a transaction is rolled back': async (payload) => {
    const transactionID = (await payload.db.beginTransaction()) ?? undefined;
    await payload.update({ collection: 'orders', id: 2, data: { state: 'sent' }, req: { transactionID } });
    await payload.update({ collection: 'authors', id: 1, data: { name: 'Nobody' }, req: { transactionID } });
    if (transactionID !== undefined) await payload.db.rollbackTransaction(transactionID);
  },
  'an author is deleted: the database clears what refers to it': (payload) =>
    payload.delete({ collection: 'authors', id: 2 }),
  'an article is deleted with its versions and child rows': (payload) =>
    payload.delete({ collection: 'articles', id: 2 }),
  'orders are deleted by one call': (payload) =>
    payload.delete({ collection: 'orders', where: { state: { equals: 'open' } } }),
};
